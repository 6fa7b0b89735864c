import { describe, expect, it } from 'vitest';
import {
  approvalFormOf,
  checkForm,
  describeState,
  holdsTargets,
  isTerminal,
  mayBecome,
  needsModal,
  planStates,
} from '../../src/domain/plan.ts';

const write = { verb: 'delete', resource: 'pods', namespace: 'shop', name: 'db-0', uid: 'u', body: {} };

describe('states of a plan', () => {
  it('never leave a terminal state', () => {
    for (const state of planStates.filter(isTerminal))
      for (const to of planStates) expect(mayBecome(state, to)).toBe(false);
  });

  it('reach execution only from APPROVED', () => {
    expect(planStates.filter((state) => mayBecome(state, 'EXECUTING'))).toEqual(['APPROVED', 'EXECUTING']);
  });

  it('reach APPROVED only from AWAITING_APPROVAL', () => {
    expect(planStates.filter((state) => mayBecome(state, 'APPROVED'))).toEqual(['AWAITING_APPROVAL']);
  });

  it('hold their targets from the quorum until they end or a person resolved them', () => {
    expect(planStates.filter(holdsTargets)).toEqual([
      'APPROVED',
      'EXECUTING',
      'VERIFYING',
      'HALTED',
      'NEEDS_ATTENTION',
    ]);
    expect(planStates.filter((state) => holdsTargets(state) && isTerminal(state))).toEqual([]);
  });

  it('have a line for people each', () => {
    expect(new Set(planStates.map(describeState)).size).toBe(planStates.length);
  });
});

describe('what an approval must bring', () => {
  it('is nothing for a low plan without proofs: the click is the vote', () => {
    expect(needsModal(approvalFormOf({ risk: 'low', requires: [], writes: [write], params: {} }))).toBe(false);
  });

  it('is a reason from high on', () => {
    expect(approvalFormOf({ risk: 'high', requires: [], writes: [write], params: {} })).toEqual({
      proofs: [],
      reason: true,
      typedName: null,
    });
  });

  it('is the data’s name where data goes, the first target’s where the plan is critical', () => {
    expect(
      approvalFormOf({
        risk: 'high',
        requires: ['data-disposable'],
        writes: [write],
        params: { dataName: 'data-db-0' },
      }).typedName,
    ).toBe('data-db-0');
    expect(approvalFormOf({ risk: 'critical', requires: [], writes: [write], params: {} }).typedName).toBe('db-0');
  });

  it('says what is missing, by input block', () => {
    const form = approvalFormOf({
      risk: 'high',
      requires: ['node-off-proof', 'data-disposable'],
      writes: [write],
      params: { dataName: 'data-db-0' },
    });
    expect(
      Object.keys(checkForm(form, { proofs: { 'node-off-proof': 'yes' }, reason: '', typedName: 'data-db-1' })),
    ).toEqual(['proof/node-off-proof', 'proof/data-disposable', 'reason', 'typed-name']);
    expect(
      checkForm(form, {
        proofs: { 'node-off-proof': 'console says terminated', 'data-disposable': 'agreed with Dana by mail' },
        reason: 'restore the shop',
        typedName: 'data-db-0',
      }),
    ).toEqual({});
  });

  it('takes a Chinese sentence that says as much in fewer characters', () => {
    const form = { proofs: [], reason: true, typedName: null };
    expect(Object.keys(checkForm(form, { proofs: {}, reason: '数据已备份', typedName: '' }))).toEqual([]);
    expect(Object.keys(checkForm(form, { proofs: {}, reason: '有备份', typedName: '' }))).toEqual(['reason']);
  });
});
