import { describe, expect, it } from 'vitest';
import { controlPlaneTrouble, podsThatLostTheirLease, staleInMs, unrenewedMs } from '../../src/domain/lease.ts';
import { minutes, seconds } from '../../src/domain/time.ts';
import { NOW, toCluster } from '../support/fixture.ts';

function lease(path: string, renewTime: string | undefined, more: object = {}): unknown {
  const [namespace, name] = path.split('/');
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, namespace, uid: `uid-${path}`, creationTimestamp: 'NOW-9d', ...more },
    spec: { holderIdentity: 'h', leaseDurationSeconds: 15, ...(renewTime === undefined ? {} : { renewTime }) },
  };
}

const manager = (time: string | undefined) => lease('kube-system/kube-controller-manager', time);
const scheduler = (time: string) => lease('kube-system/kube-scheduler', time);

describe('the control plane', () => {
  it.each<[string, readonly unknown[], string | undefined]>([
    ['whose controller manager is stale does not act', [manager('NOW-6m'), scheduler('NOW-2s')], 'controller-manager'],
    ['in which two of its own leases are late is slow', [manager('NOW-40s'), scheduler('NOW-50s')], 'slow'],
    [
      'is slow when one of its leases is late and one of somebody else',
      [manager('NOW-2s'), scheduler('NOW-50s'), lease('cert/manager', 'NOW-90s')],
      'slow',
    ],
    ['is well when a single lease is late', [manager('NOW-40s'), scheduler('NOW-2s')], undefined],
    [
      'is well when only others are late',
      [manager('NOW-2s'), lease('a/x', 'NOW-1m'), lease('b/y', 'NOW-1m')],
      undefined,
    ],
    ['is well when the other late lease was left behind', [manager('NOW-40s'), lease('old/x', 'NOW-9d')], undefined],
    [
      'is well when a scheduler is gone and one driver is late',
      [scheduler('NOW-9d'), lease('a/x', 'NOW-1m')],
      undefined,
    ],
    ['is not judged by nodes', [manager('NOW-40s'), lease('kube-node-lease/n1', 'NOW-2m')], undefined],
    [
      'is not judged by API servers that were replaced',
      [manager('NOW-40s'), lease('kube-system/a', 'NOW-2m', { labels: { 'apiserver.kubernetes.io/identity': 'x' } })],
      undefined,
    ],
    ['is not judged by a lease that was never renewed', [manager(undefined)], undefined],
    ['is not judged by a lease of that name elsewhere', [lease('shop/kube-controller-manager', 'NOW-9d')], undefined],
    ['is not judged without leases', [], undefined],
  ])('%s', (_, objects, reason) => {
    expect(controlPlaneTrouble(toCluster(objects))?.reason).toBe(reason);
  });

  it('names its own late leases first', () => {
    const found = controlPlaneTrouble(
      toCluster([lease('a/x', 'NOW-1m'), scheduler('NOW-40s'), manager('NOW-50s'), lease('b/y', 'NOW-3s')]),
    );
    expect(found?.leases.map(({ name }) => name)).toEqual(['kube-controller-manager', 'kube-scheduler', 'x']);
  });
});

it('a late lease says when it will be stale', () => {
  const [found] = toCluster([lease('a/x', 'NOW-100s')]).objects.leases;
  if (!found) throw new Error('no lease');
  expect(staleInMs(found, NOW)).toBe(seconds(200));
  expect(unrenewedMs(found, NOW)).toBe(seconds(100));
  expect(staleInMs(found, NOW + minutes(10))).toBe(0);
});

it.each<[string, string, string, boolean]>([
  ['an attacher that lost its lease', 'r.io/csi-attacher:v4.9.0', 'failed to renew lease: leaderelection lost', true],
  ['one that says it in other words', 'r.io/csi-provisioner:v5.3.0', 'stopped leading', true],
  ['a sidecar that crashes for its own reasons', 'r.io/csi-attacher:v4.9.0', 'panic: nil pointer', false],
  ['another program that lost its lease', 'r.io/operator:1', 'leaderelection lost', false],
])('%s: %s, %s', (_, image, message, isOne) => {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'csi', uid: 'u' },
    spec: { containers: [{ name: 'c', image }] },
    status: { containerStatuses: [{ name: 'c', lastState: { terminated: { reason: 'Error', message } } }] },
  };
  expect(podsThatLostTheirLease(toCluster([pod]))).toHaveLength(isOne ? 1 : 0);
});
