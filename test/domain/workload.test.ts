import { describe, expect, it } from 'vitest';
import { deploymentOf, effectiveMaxUnavailable, firstNotReady, rolloutOf } from '../../src/domain/workload.ts';
import { toCluster } from '../support/fixture.ts';
import { ownedBy, type Raw, rawDeployment, rawPod, rawReplicaSet, rawStatefulSet } from '../support/objects.ts';

describe('what a rollout may take away, after rounding', () => {
  const cases: readonly (readonly [number, Raw | undefined, number])[] = [
    [1, undefined, 0],
    [3, undefined, 0],
    [4, undefined, 1],
    [1, { maxUnavailable: '25%', maxSurge: '25%' }, 0],
    [1, { maxUnavailable: 0, maxSurge: 1 }, 0],
    [1, { maxUnavailable: 1, maxSurge: 0 }, 1],
    [1, { maxUnavailable: '50%', maxSurge: 0 }, 1],
    [3, { maxUnavailable: '34%' }, 1],
    [2, { maxUnavailable: 5 }, 2],
    [0, { maxUnavailable: 1 }, 0],
    [1, { maxUnavailable: 'many' }, 0],
  ];
  it.each(cases)('%i replicas, %j: %i', (replicas, rollingUpdate, expected) => {
    const strategy = { type: 'RollingUpdate', ...(rollingUpdate ? { rollingUpdate } : {}) };
    const [deployment] = toCluster([rawDeployment('web', 'shop', { replicas, strategy })]).objects.deployments;
    expect(deployment && effectiveMaxUnavailable(deployment)).toBe(expected);
  });

  it('Recreate takes nothing away while it waits', () => {
    const [deployment] = toCluster([rawDeployment('web', 'shop', { strategy: { type: 'Recreate' } })]).objects
      .deployments;
    expect(deployment && effectiveMaxUnavailable(deployment)).toBe(0);
  });
});

describe('a rollout', () => {
  const pod = (name: string, set: string) => rawPod(name, 'shop', [], { more: ownedBy('ReplicaSet', set, 'shop') });
  const sets = [
    rawReplicaSet('web-1', 'shop', 'web'),
    rawReplicaSet('web-2', 'shop', 'web'),
    rawReplicaSet('api-1', 'shop', 'api'),
  ];
  const pods = [pod('a', 'web-1'), pod('b', 'web-1'), pod('c', 'web-2'), pod('d', 'api-1')];
  const rollout = (one: string, other: string, deployments: readonly Raw[]) => {
    const cluster = toCluster([...deployments, ...sets, ...pods]);
    const [a, b] = [cluster.findPod('shop', one), cluster.findPod('shop', other)];
    return a && b && rolloutOf(a, b, cluster)?.name;
  };

  it('is between pods of two ReplicaSets of one Deployment that rolls', () => {
    const deployments = [rawDeployment('web', 'shop'), rawDeployment('api', 'shop')];
    expect([rollout('a', 'c', deployments), rollout('a', 'b', deployments), rollout('a', 'd', deployments)]).toEqual([
      'web',
      undefined,
      undefined,
    ]);
    expect(rollout('a', 'c', [rawDeployment('web', 'shop', { strategy: { type: 'Recreate' } })])).toBeUndefined();
    expect(rollout('a', 'c', [])).toBeUndefined();
  });

  it('has no Deployment when the one of that name is another', () => {
    const cluster = toCluster([
      { ...rawDeployment('web', 'shop'), metadata: { name: 'web', namespace: 'shop', uid: 'new' } },
      ...sets,
      ...pods,
    ]);
    const a = cluster.findPod('shop', 'a');
    expect(a && deploymentOf(a, cluster)).toBeUndefined();
  });
});

describe('an ordered StatefulSet stands at', () => {
  const member = (ordinal: number, ready: boolean, more: Raw = {}) =>
    rawPod(`db-${ordinal}`, 'shop', [], {
      more: { ...ownedBy('StatefulSet', 'db', 'shop'), ...more },
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
    });
  const cases: readonly (readonly [string, Raw, Raw, readonly Raw[], string | undefined])[] = [
    [
      'its first pod that is not ready',
      { replicas: 3 },
      { readyReplicas: 1 },
      [member(0, true), member(1, false)],
      'db-1',
    ],
    ['its first pod that is missing', { replicas: 3 }, { readyReplicas: 1 }, [member(0, true)], 'db-1'],
    [
      'a pod that is still ending',
      { replicas: 2 },
      { readyReplicas: 0 },
      [member(0, true, { deletionTimestamp: 'NOW-1m' })],
      'db-0',
    ],
    ['what its status does not count as ready', { replicas: 2 }, { readyReplicas: 1 }, [member(1, false)], 'db-1'],
    ['ordinals that begin later', { replicas: 2, ordinals: { start: 5 } }, {}, [member(5, true)], 'db-6'],
    [
      'nothing when all are ready',
      { replicas: 2 },
      { readyReplicas: 2 },
      [member(0, true), member(1, true)],
      undefined,
    ],
  ];
  it.each(cases)('%s', (_, spec, status, pods, expected) => {
    const cluster = toCluster([rawStatefulSet('db', 'shop', spec, status), ...pods]);
    const set = cluster.findStatefulSet('shop', 'db');
    expect(set && firstNotReady(set, cluster)?.podName).toBe(expected);
  });
});
