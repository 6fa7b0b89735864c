import { describe, expect, it } from 'vitest';
import { deleteObject, patchObject, toPlanned } from '../../src/domain/write.ts';
import {
  type AuditLine,
  changesAmong,
  describePlanned,
  describeRequest,
  isBodyOf,
  isEffect,
} from '../cluster/bed/audit.ts';
import { ACTOR, READER } from '../cluster/bed/credentials.ts';

/** The scenarios of `test/cluster` compare the API server's audit log with the plans: what must not pass for equal. */
const patch = patchObject({ resource: 'nodes', namespace: null, name: 'n1', uid: 'u1' }, [
  { op: 'add', path: '/spec/taints/-', value: { key: 'a', effect: 'NoExecute' } },
]);
const { body: operations } = patch;
const taint = toPlanned(patch);
const removal = toPlanned(deleteObject({ resource: 'pods', namespace: 'shop', name: 'web', uid: 'u2' }));

const patched: AuditLine = {
  auditID: 'a1',
  stage: 'ResponseComplete',
  verb: 'patch',
  requestURI: '/api/v1/nodes/n1?fieldManager=k8s-storage-bot',
  user: { username: ACTOR },
  objectRef: { resource: 'nodes', name: 'n1' },
  requestObject: taint.body,
  responseStatus: { code: 200 },
};
const deleted: AuditLine = {
  ...patched,
  verb: 'delete',
  requestURI: '/api/v1/namespaces/shop/pods/web',
  objectRef: { resource: 'pods', namespace: 'shop', name: 'web' },
  requestObject: {
    kind: 'DeleteOptions',
    apiVersion: 'v1',
    preconditions: { uid: 'u2' },
    propagationPolicy: 'Background',
  },
};

describe('the witness', () => {
  it('knows the writes of a plan by account, verb, object, uid and body', () => {
    expect(describeRequest(patched)).toBe(describePlanned(taint));
    expect(describeRequest(deleted)).toBe(describePlanned(removal));
    expect(isBodyOf(taint, patched.requestObject)).toBe(true);
    expect(isBodyOf(removal, deleted.requestObject)).toBe(true);
  });

  it.each<[string, AuditLine]>([
    ['the reading account', { ...patched, user: { username: READER } }],
    ['another object', { ...patched, objectRef: { resource: 'nodes', name: 'n2' } }],
    ['a subresource', { ...patched, objectRef: { resource: 'nodes', name: 'n1', subresource: 'status' } }],
    ['another verb', { ...patched, verb: 'update' }],
    ['a refusal', { ...patched, responseStatus: { code: 422 } }],
    ['no test of the uid', { ...patched, requestObject: [{ op: 'add', path: '/spec/taints/-', value: {} }] }],
  ])('does not take %s for the write of the plan', (_, line) => {
    expect(describeRequest(line)).not.toBe(describePlanned(taint));
  });

  it('sees a deletion without its uid, and a patch with one operation more', () => {
    expect(describeRequest({ ...deleted, requestObject: { kind: 'DeleteOptions' } })).not.toBe(
      describePlanned(removal),
    );
    const more = [...operations, { op: 'remove', path: '/metadata/finalizers' }];
    expect(isBodyOf(taint, more)).toBe(false);
  });

  it('counts a repeated write once when it changed nothing more, and twice when it did', () => {
    const at = (resourceVersion: string): AuditLine => ({
      ...patched,
      responseObject: { metadata: { uid: 'u1', resourceVersion } },
    });
    expect(changesAmong([at('7'), at('7')])).toHaveLength(1);
    expect(changesAmong([at('7'), at('8')])).toHaveLength(2);
    expect(changesAmong([at('7'), { ...at('7'), responseStatus: { code: 422 } }])).toHaveLength(1);
    expect(changesAmong([deleted, deleted])).toHaveLength(2);
  });

  it('tells dry runs apart, in the address and in the body of a deletion, and reads', () => {
    expect([patched, deleted].map(isEffect)).toEqual([true, true]);
    expect(isEffect({ ...patched, requestURI: `${patched.requestURI}&dryRun=All` })).toBe(false);
    expect(isEffect({ ...deleted, requestObject: { kind: 'DeleteOptions', dryRun: ['All'] } })).toBe(false);
    expect(isEffect({ ...patched, verb: 'get' })).toBe(false);
  });
});
