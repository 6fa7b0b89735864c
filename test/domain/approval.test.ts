import { describe, expect, it } from 'vitest';
import { languageOf, quorumOf, requirementOf, whyMayNotApprove, whyNotEligible } from '../../src/domain/approval.ts';
import type { Vote } from '../../src/domain/plan.ts';
import type { Risk } from '../../src/domain/remediation.ts';
import { verbatim } from '../../src/domain/text.ts';
import { memberOf } from '../support/people.ts';

const member = memberOf('U1', { name: 'sam', locale: 'en-US' });

function vote(user: string, decision: Vote['decision'] = 'approve', digest = 'sha256:a'): Vote {
  return { user, decision, digest, proofs: {}, reason: null, at: '2026-11-30T12:00:00Z' };
}

function plan(risk: Risk, requester: string | null, votes: readonly Vote[] = []) {
  return { risk, requester, digest: 'sha256:a', votes };
}

describe('who may decide', () => {
  it('lets a full member of the workspace decide', () => {
    expect(whyNotEligible(member, 'T1')).toBeUndefined();
  });

  it.each([
    ['somebody of another workspace', { ...member, teamId: 'T2' }],
    ['a deactivated account', { ...member, isDeleted: true }],
    ['a bot', { ...member, isBot: true }],
    ['a guest', { ...member, isRestricted: true }],
    ['a single-channel guest', { ...member, isUltraRestricted: true }],
    ['an external person', { ...member, isStranger: true }],
    ['somebody whom Slack did not tell', { id: 'U1', unreadable: verbatim('ratelimited') }],
  ])('refuses %s with a reason', (_, person) => {
    const why = whyNotEligible(person, 'T1');
    expect(why?.en).toMatch(/\w{4}/);
    expect(why?.zh).toMatch(/\p{Script=Han}{4}/u);
  });
});

it.each([
  ['zh-CN', 'zh'],
  ['zh-TW', 'zh'],
  ['zh', 'zh'],
  ['en-GB', 'en'],
  ['de-DE', 'en'],
  [undefined, undefined],
])('a person whose Slack speaks %s is spoken to in %s', (locale, language) => {
  expect(languageOf({ ...member, locale })).toBe(language);
});

it('somebody whom Slack does not tell has no known language', () => {
  expect(languageOf({ id: 'U1', unreadable: verbatim('ratelimited') })).toBeUndefined();
});

describe('what a plan needs', () => {
  it.each<[Risk, number, boolean]>([
    ['low', 1, true],
    ['medium', 1, false],
    ['high', 2, false],
    ['critical', 2, false],
  ])('of risk %s: %i, requester allowed: %s', (risk, people, requesterMay) => {
    expect(requirementOf(risk)).toEqual({ people, requesterMay });
  });

  it('refuses the requester above low risk, and nobody else', () => {
    expect(whyMayNotApprove(plan('low', 'U1'), 'U1')).toBeUndefined();
    expect(whyMayNotApprove(plan('medium', 'U1'), 'U1')?.en).toContain('somebody else');
    expect(whyMayNotApprove(plan('high', 'U1'), 'U1')?.en).toContain('two other people');
    expect(whyMayNotApprove(plan('high', 'U1'), 'U2')).toBeUndefined();
    expect(whyMayNotApprove(plan('high', null), 'U1')).toBeUndefined();
  });

  it('refuses a second approval of the same person', () => {
    expect(whyMayNotApprove(plan('high', null, [vote('U2')]), 'U2')?.en).toContain('already');
  });
});

describe('the quorum', () => {
  it.each<[string, Risk, string | null, readonly Vote[], boolean]>([
    ['one for low', 'low', 'U1', [vote('U1')], true],
    ['not the requester for medium', 'medium', 'U1', [vote('U1')], false],
    ['one other for medium', 'medium', 'U1', [vote('U2')], true],
    ['not one for high', 'high', 'U1', [vote('U2')], false],
    ['two others for high', 'high', 'U1', [vote('U2'), vote('U3')], true],
    ['not the requester as one of two', 'high', 'U1', [vote('U1'), vote('U2')], false],
    ['not the same person twice', 'high', null, [vote('U2'), vote('U2')], false],
    ['not a vote for another digest', 'high', null, [vote('U2'), vote('U3', 'approve', 'sha256:b')], false],
    ['not with a reject', 'high', null, [vote('U2'), vote('U3'), vote('U4', 'reject')], false],
  ])('is %s', (_, risk, requester, votes, isMet) => {
    expect(quorumOf(plan(risk, requester), votes).isMet).toBe(isMet);
  });

  it('is ended by one reject', () => {
    expect(quorumOf(plan('low', null), [vote('U2', 'reject')]).isRejected).toBe(true);
  });

  it('tells how many are there and how many are needed', () => {
    expect(quorumOf(plan('critical', 'U1'), [vote('U2')])).toMatchObject({ approvals: 1, needed: 2 });
  });
});
