import { describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/domain/cluster.ts';
import type { Pod } from '../../src/domain/objects.ts';
import {
  deletingForMs,
  graceMs,
  isBeyondGrace,
  isFinished,
  isUnscheduled,
  isWaiting,
  unscheduledMs,
  usesVolumes,
  waitedMs,
} from '../../src/domain/pod.ts';
import { NOW, toCluster } from '../support/fixture.ts';
import { type Raw, rawAttachment, rawPod, waitingSince } from '../support/objects.ts';

function only(object: Raw, ...more: readonly Raw[]): { readonly pod: Pod; readonly cluster: Cluster } {
  const cluster = toCluster([object, ...more]);
  const [pod] = cluster.objects.pods;
  if (!pod) throw new Error('no pod');
  return { pod, cluster };
}

function event(reason: string, type: string, lastTimestamp: string): Raw {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: reason, namespace: 'shop', uid: reason },
    involvedObject: { kind: 'Pod', namespace: 'shop', name: 'p', uid: 'u-shop-p' },
    reason,
    type,
    lastTimestamp,
  };
}

const waiting = waitingSince('NOW-10m');
const conditions = (waiting['conditions'] ?? []) as readonly Raw[];
const containers = (reason: string) => ({
  containerStatuses: [{ name: 'app', ready: false, state: { waiting: { reason } } }],
});

describe('a waiting pod has a node and no container that started', () => {
  it.each([
    ['scheduled and ContainerCreating', { node: 'n1', status: waiting }, [], true],
    [
      'scheduled with init containers to come',
      { node: 'n1', status: { ...waiting, ...containers('PodInitializing') } },
      [],
      true,
    ],
    [
      'scheduled without any container status',
      { node: 'n1', status: { phase: 'Pending', containerStatuses: [] } },
      [],
      true,
    ],
    ['not scheduled', { status: waiting }, [], false],
    ['running', { node: 'n1' }, [], false],
    ['crashing', { node: 'n1', status: { ...waiting, ...containers('CrashLoopBackOff') } }, [], false],
    ['failed', { node: 'n1', status: { phase: 'Failed' } }, [], false],
    ['deleting', { node: 'n1', status: waiting, more: { deletionTimestamp: 'NOW-1m' } }, [], false],
    [
      'its sandbox ready',
      {
        node: 'n1',
        status: { ...waiting, conditions: [...conditions, { type: 'PodReadyToStartContainers', status: 'True' }] },
      },
      [],
      false,
    ],
    ['pulling its image since', { node: 'n1', status: waiting }, [event('Pulling', 'Normal', 'NOW-1m')], false],
    [
      'an image pulled before it was scheduled',
      { node: 'n1', status: waiting },
      [event('Pulled', 'Normal', 'NOW-20m')],
      true,
    ],
    ['a warning of the same name', { node: 'n1', status: waiting }, [event('Pulling', 'Warning', 'NOW-1m')], true],
  ] as const)('%s', (_, options, events, expected) => {
    const { pod, cluster } = only(rawPod('p', 'shop', ['data'], options), ...events);
    expect(isWaiting(pod, cluster)).toBe(expected);
  });
});

it('a pod waits since it was scheduled or its own attachment was made, whichever is later', () => {
  const { pod, cluster } = only(
    rawPod('p', 'shop', ['data'], { node: 'n1', status: waiting }),
    rawAttachment('pv-data', 'n1', { creationTimestamp: 'NOW-80s' }),
  );
  expect([waitedMs(pod, undefined, NOW), waitedMs(pod, cluster.findAttachment('va-pv-data-n1'), NOW)]).toEqual([
    600_000, 80_000,
  ]);
});

it('a pod is beyond its grace when its deletion was asked for longer ago than that', () => {
  // The API server stores the end of the grace: asked for 90 s ago with 30 s of grace.
  const { pod } = only(
    rawPod('p', 'shop', [], { more: { deletionTimestamp: 'NOW-60s', deletionGracePeriodSeconds: 30 } }),
  );
  expect([deletingForMs(pod, NOW), graceMs(pod)]).toEqual([90_000, 30_000]);
  expect([isBeyondGrace(pod, NOW), isBeyondGrace(pod, NOW, 60_001)]).toEqual([true, false]);
});

it('a pod that is not deleting has the grace of its spec and is beyond nothing', () => {
  const { pod } = only(rawPod('p', 'shop', [], { spec: { terminationGracePeriodSeconds: 5 } }));
  expect([graceMs(pod), deletingForMs(pod, NOW), isBeyondGrace(pod, NOW)]).toEqual([5000, 0, false]);
});

it('a pod without a node is unscheduled, for as long as the scheduler has refused it', () => {
  const status = {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', lastTransitionTime: 'NOW-2m' }],
  };
  const { pod } = only(rawPod('p', 'shop', [], { status }));
  expect([isUnscheduled(pod), unscheduledMs(pod, NOW), isFinished(pod)]).toEqual([true, 120_000, false]);
  expect(isUnscheduled(only(rawPod('p', 'shop', [], { node: 'n1' })).pod)).toBe(false);
});

describe('a pod uses its volumes for the attach/detach controller', () => {
  const deleting = { deletionTimestamp: 'NOW-1m' };
  const ended = { phase: 'Running', containerStatuses: [{ name: 'app', state: { terminated: {} } }] };
  it.each([
    ['running', { node: 'n1' }, true],
    ['without a node', {}, false],
    ['finished', { node: 'n1', status: { phase: 'Succeeded' } }, false],
    ['deleting, its containers frozen as running', { node: 'n1', more: deleting }, true],
    ['deleting, all its containers ended', { node: 'n1', more: deleting, status: ended }, false],
  ] as const)('%s', (_, options, expected) => {
    expect(usesVolumes(only(rawPod('p', 'shop', [], options)).pod)).toBe(expected);
  });
});
