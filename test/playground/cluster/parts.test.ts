import { X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { allows } from '../../../src/playground/cluster/authz.ts';
import { prune } from '../../../src/playground/cluster/json.ts';
import { applyJsonPatch, applyMergePatch, applyStrategicPatch } from '../../../src/playground/cluster/patch.ts';
import { bytesOf } from '../../../src/playground/cluster/quantity.ts';
import { ageText } from '../../../src/playground/cluster/table.ts';
import { seededRandom } from '../../../src/playground/cluster/time.ts';
import { selfSigned } from '../../../src/playground/cluster/tls.ts';

describe('patches', () => {
  it('leave the document as it was, whatever they do', () => {
    const document = { metadata: { labels: { a: '1' } } };
    applyJsonPatch(document, [{ op: 'replace', path: '/metadata/labels/a', value: '2' }]);
    applyMergePatch(document, { metadata: { labels: { a: null } } });
    applyStrategicPatch(document, { metadata: { labels: { a: '3' } } });
    expect(document).toEqual({ metadata: { labels: { a: '1' } } });
  });

  it.each(['/__proto__/polluted', '/constructor/prototype/polluted', '/metadata/__proto__/polluted'])(
    'never reach a prototype by %s',
    (path) => {
      expect(() => applyJsonPatch({ metadata: {} }, [{ op: 'add', path, value: true }])).toThrow();
      applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}'));
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    },
  );

  it('read ~1 and ~0 in keys', () => {
    const key = 'volume.kubernetes.io/selected-node';
    const patched = applyJsonPatch({ annotations: { [key]: 'n1', 'a~b': 'x' } }, [
      { op: 'test', path: '/annotations/volume.kubernetes.io~1selected-node', value: 'n1' },
      { op: 'remove', path: '/annotations/volume.kubernetes.io~1selected-node' },
      { op: 'remove', path: '/annotations/a~0b' },
    ]);
    expect(patched).toEqual({ annotations: {} });
  });

  it('grow finalizers, join containers by name and replace taints whole in a strategic merge', () => {
    const patched = applyStrategicPatch(
      {
        finalizers: ['a'],
        spec: { taints: [{ key: 'x' }], containers: [{ name: 'one', image: '1', args: ['k'] }, { name: 'two' }] },
      },
      {
        finalizers: ['b'],
        spec: {
          taints: [{ key: 'y' }],
          containers: [
            { name: 'one', image: '2' },
            { name: 'two', $patch: 'delete' },
          ],
        },
      },
    );
    expect(patched).toEqual({
      finalizers: ['a', 'b'],
      spec: { taints: [{ key: 'y' }], containers: [{ name: 'one', image: '2', args: ['k'] }] },
    });
  });
});

describe('small parts', () => {
  it('drops what Go omits: nulls, empty lists, empty labels', () => {
    const object = { metadata: { labels: {}, finalizers: [] }, spec: { taints: [], a: null, emptyDir: {} } };
    prune(object);
    expect(object).toEqual({ metadata: {}, spec: { emptyDir: {} } });
  });

  it.each([
    ['10Gi', 10 * 2 ** 30],
    ['1500M', 1.5e9],
    ['42', 42],
    ['nonsense!', 0],
  ])('reads the quantity %s', (quantity, bytes) => {
    expect(bytesOf(quantity)).toBe(bytes);
  });

  it.each([
    [90_000, '90s'],
    [10 * 3_600_000, '10h'],
    [3 * 86_400_000 + 4 * 3_600_000, '3d4h'],
  ])('writes an age of %i ms as %s', (ms, expected) => {
    expect(ageText(new Date(1_000_000_000_000).toISOString(), 1_000_000_000_000 + ms)).toBe(expected);
  });

  it('makes uuids of version 4, the same from the same seed', () => {
    const random = seededRandom(5);
    const first = random.uuid();
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(random.uuid()).not.toBe(first);
    expect(seededRandom(5).uuid()).toBe(first);
  });

  it('signs a certificate for loopback that holds for its own key only', () => {
    const now = Date.parse('2026-11-30T12:00:00Z');
    const certificate = new X509Certificate(selfSigned(now).cert);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
    expect(certificate.verify(new X509Certificate(selfSigned(now).cert).publicKey)).toBe(false);
    expect([
      certificate.checkIP('127.0.0.1'),
      certificate.checkHost('localhost'),
      certificate.checkHost('example.com'),
    ]).toEqual(['127.0.0.1', 'localhost', undefined]);
  });

  it.each([
    [{ verb: 'get', resource: 'pods', subresource: '' }, true],
    [{ verb: 'delete', resource: 'pods', subresource: '' }, false],
    [{ verb: 'get', resource: 'pods', subresource: 'status' }, false],
    [{ verb: 'patch', resource: 'deployments', subresource: 'scale' }, true],
    [{ verb: 'patch', resource: 'deployments', subresource: '' }, false],
  ])('holds RBAC rules to verb, resource and sub-resource: %j', (wanted, allowed) => {
    const rules = [
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['patch'] },
    ];
    const group = wanted.resource === 'pods' ? '' : 'apps';
    expect(allows(rules, { ...wanted, group, namespace: 'x', name: 'y' })).toBe(allowed);
  });
});
