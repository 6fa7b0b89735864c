import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type House, startScenarioHouse } from '../../cluster/bed/house.ts';
import { beginOf, runScenario } from '../../cluster/bed/run.ts';
import type { Scenario } from '../../cluster/bed/scenario.ts';
import { loadScenarios } from '../../cluster/bed/scenarios.ts';
import { SimulatedBed } from '../../cluster/bed/simulated.ts';

/** Scenarios of the real test bed that end here as they end there; `TABLE=REGEX` tries others. */
const played = [
  'claim-class-missing',
  'claim-filling-up',
  'claim-held-by-finished-pod',
  'claim-held-by-foreign-finalizer',
  'claim-held-by-pod',
  'claim-held-by-pod-node-down',
  'claim-held-by-pod-of-deployment',
  'claim-lost',
  'claim-missing',
  'claim-no-default-class',
  'claim-ref-stale',
  'claim-ref-stale-lost',
  'claim-volume-taken',
  'claim-waits-for-consumer',
  'consumer-bypasses-scheduler',
  'detach-failed',
  'driver-not-installed',
  'local-volume-node-gone',
  'multi-attach-node-down',
  'multi-attach-node-gone',
  'namespace-held',
  'out-of-service-taint-left',
  'resize-needs-pod',
  'rollout-deadlock',
  'rwop-conflict',
  'statefulset-halted',
  'volume-deletion-stuck',
  'volume-reclaim-failed',
  'volume-released-retained',
  'volume-unprotected-from-leak',
];

/** What those of `test/cluster/scenarios` need that the playground does not pretend. */
const SNAPSHOTS = 'it has no snapshot controller';
const MOUNTS = 'its storage system has no mounts, so none of them fails or is seen twice';
const CALLS = 'its storage system has no such call, or no such answer to it';
const PROGRAMS = 'its sidecars and components have neither flags nor leases of their own';
const MACHINES = 'its machines have no limits and are never replaced by another';
const beyond: Readonly<Record<string, string>> = {
  'article-incident': SNAPSHOTS,
  'attach-failed': 'its storage system fails for volumes, not for machines',
  'attached-outside-kubernetes': 'its storage system knows no machine but those of the cluster',
  'attachment-finalizers-cleared': 'its kubelet says that a volume is in use for as long as the pod is there',
  'attachment-stale': 'its attach/detach controller takes no attachment over that it has not made',
  'attachment-untrue': MACHINES,
  'attachment-volume-missing': 'its attacher gives up on an attachment whose volume is gone',
  'attacher-backlog': PROGRAMS,
  'backend-unreachable': MOUNTS,
  'backend-volume-orphaned': 'its storage system is not shared with other clusters',
  'capacity-exhausted': 'its driver publishes no capacity',
  'claim-held-by-pod-finalizer': 'its garbage collector does not follow Jobs',
  'claim-held-by-snapshot': SNAPSHOTS,
  'claim-protection-stalled': 'its controllers need no rights, so none can be taken from them',
  'claim-provisioning-failed': 'its provisioner clones nothing',
  'claim-quota-exceeded': 'it has no quota controller',
  'claim-selected-node-gone': CALLS,
  'claim-volume-mismatch': 'its storage system is not shared with other clusters',
  'control-plane-unhealthy': PROGRAMS,
  'csi-controller-down': PROGRAMS,
  'default-timers-dead-node': 'its time is not the time of the wall',
  'detach-failed-node-gone': 'its storage system fails for volumes, not for machines',
  'double-attachment': 'its storage system is always exclusive',
  'driver-missing-on-node': 'its drivers never leave a machine',
  'ephemeral-claim-conflict': 'it has no generic ephemeral volumes',
  'harm-attachment-deleted-on-live-node': MOUNTS,
  'harm-claim-finalizers-nulled': MOUNTS,
  'harm-forced-deletion-without-proof': MOUNTS,
  'harm-taint-on-live-node': MOUNTS,
  'incident-three-things-at-once': 'its scheduler prefers no machine, so the replicas are not on one',
  'mount-failed': MOUNTS,
  'mount-failed-duplicate-uuid': MOUNTS,
  'mount-failed-filesystem': MOUNTS,
  'mount-failed-object-missing': 'it has no Secrets',
  'mount-failed-option': MOUNTS,
  'multi-attach-live-node': 'its scheduler spreads no replicas over machines',
  'resize-failed': CALLS,
  'resize-needs-detach': CALLS,
  'snapshot-deletion-stuck': SNAPSHOTS,
  'snapshot-failed': SNAPSHOTS,
  'storage-rbac-denied': 'its controllers need no rights, so none can be taken from them',
  'unmount-stuck': MOUNTS,
  'volume-deleted-while-bound': SNAPSHOTS,
  'volume-limit-of-the-backend': MACHINES,
  'volume-limit-reached': MACHINES,
  'volume-ownership-change': PROGRAMS,
  'volume-released-in-use': 'its time jumps, and after that the released volume is gone under the running pod',
  'volume-topology-conflict': SNAPSHOTS,
  'webhook-blocks-storage': 'it asks no webhooks',
};

const all = await loadScenarios();
const wanted = process.env['TABLE'];
const scenarios = all.filter(({ id }) => (wanted === undefined ? played.includes(id) : new RegExp(wanted).test(id)));
let house: House;

beforeAll(async () => {
  house = await startScenarioHouse(scenarios.map(({ id }) => id));
});
afterAll(() => house?.close());

/** Two at a time, as with real controllers: all of them talk in one channel, in which Slack takes one message a second. */
const lanes = [Promise.resolve(), Promise.resolve()];

describe.concurrent('the playground ends where real controllers end', () => {
  it.each(scenarios.map((scenario, i) => ({ ...scenario, scenario, lane: i % lanes.length })))(
    '$id: $title',
    { timeout: 900_000 },
    async ({ scenario, lane }) => {
      const played = (lanes[lane] ?? Promise.resolve()).then(() => play(scenario));
      lanes[lane] = played.catch(() => undefined);
      await played;
    },
  );
});

async function play(scenario: Scenario): Promise<void> {
  const bed = await SimulatedBed.begin(scenario.id, scenario.bed);
  const progress = beginOf(scenario);
  try {
    await runScenario(scenario, bed, house, progress, { isRecording: false });
    expect(progress).toMatchObject({ provoked: true, diagnosed: true, audited: true });
  } finally {
    await bed.close();
  }
}

it('leaves no scenario out without a reason', () => {
  const told = [...played, ...Object.keys(beyond)];
  expect(all.map(({ id }) => id).filter((id) => !told.includes(id))).toEqual([]);
  expect(told.toSorted()).toEqual([...new Set(told)].filter((id) => all.some((one) => one.id === id)).toSorted());
});
