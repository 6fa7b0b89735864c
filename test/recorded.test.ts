import { beforeAll, describe, expect, it } from 'vitest';
import type { Catalogue } from '../src/diagnose.ts';
import { describeRef } from '../src/domain/ref.ts';
import type { SpokenReport } from '../src/domain/spoken.ts';
import { minutes } from '../src/domain/time.ts';
import { diagnoseObjects, loadCatalogue } from './support/fixture.ts';
import { readRecorded, recordedFiles } from './support/recorded.ts';

/** Every recorded moment with all that may be found in it twenty minutes later, the first cause first; nothing else may be. */
const expected: Readonly<Record<string, readonly string[]>> = {
  'a1-pvc-terminating-pod-on-dead-node/fault': ['claim-held-by-pod-node-down: PersistentVolumeClaim a1/data'],
  'a2-pvc-terminating-completed-pod/fault': ['claim-held-by-finished-pod: PersistentVolumeClaim a2/data'],
  'b1-pv-deleted-first-with-finalizer/attach-refused': [
    'volume-deleted-while-bound: PersistentVolume pvc-f4bd066b-d125-4391-aaee-ef8fb93bcc86',
  ],
  'b1-pv-deleted-first-with-finalizer/bomb': [
    'volume-deleted-while-bound: PersistentVolume pvc-f4bd066b-d125-4391-aaee-ef8fb93bcc86',
  ],
  'b2-pv-deleted-first-without-finalizer-leak/bomb': [
    'volume-deleted-while-bound: PersistentVolume pvc-cf598887-500a-4e90-8b54-739510808098',
  ],
  'b3-volumedelete-still-attached/still-attached': [
    'volume-released-in-use: PersistentVolume pvc-f91b903e-72d3-4bb0-a85a-773db21c889c',
  ],
  'b3-volumefaileddelete-and-still-attached/still-attached': [
    'volume-released-in-use: PersistentVolume pvc-602e4c59-9a6b-47c9-81aa-747a4867d92e',
  ],
  'c1-multi-attach-dead-node-deployment/after-force-delete': ['multi-attach-node-down: Node n1'],
  'c1-multi-attach-dead-node-deployment/fault': ['multi-attach-node-down: Node n1'],
  'c1-multi-attach-dead-node-deployment/healed': ['multi-attach-live-node: Deployment c1/web'],
  'c2-node-object-deleted/fault': [
    'multi-attach-node-gone: VolumeAttachment csi-6665a57686a082bf25416cc3d64ed262b707cc93b5529ec566f7b0be8e33d9cf',
    'statefulset-halted: StatefulSet c2/q',
  ],
  'c2-node-object-deleted/healed': [],
  'c3-live-node-two-pods-share-rwo/fault': ['multi-attach-live-node: Pod c3/one'],
  'c3-live-node-two-pods-share-rwo/final': ['multi-attach-live-node: Pod c3/one'],
  'c5-same-backend-volume-two-namespaces/final': ['multi-attach-live-node: Pod c5a/one'],
  'c6-node-partition-and-return/fault': ['multi-attach-node-down: Node n1'],
  'c6-node-partition-and-return/healed': [],
  'c7-out-of-service-taint-on-live-node/final': ['out-of-service-taint-left: Node n1'],
  'c8-deployment-three-replicas-one-rwo-claim/final': ['multi-attach-live-node: Deployment c8/web'],
  'd-rolling-update-rwo-deadlock/fault': ['rollout-deadlock: Deployment d/web'],
  'd-rolling-update-rwo-deadlock/healed': [],
  'default-timers-dead-node/before': [],
  'default-timers-dead-node/final': [
    'multi-attach-node-down: Node n1',
    'multi-attach-live-node: Pod dep/probe',
    'claim-held-by-pod-node-down: PersistentVolumeClaim pvcd/data',
    'statefulset-halted: StatefulSet sts/db',
  ],
  'default-timers-dead-node/multiattach-used-by': [
    'multi-attach-node-down: Node n1',
    'claim-held-by-pod-node-down: PersistentVolumeClaim pvcd/data',
    'statefulset-halted: StatefulSet sts/db',
  ],
  'e1-storage-class-not-found/final': [
    'claim-class-missing: PersistentVolumeClaim e1/data',
    'claim-class-missing: PersistentVolumeClaim e1/empty',
    'claim-no-default-class: PersistentVolumeClaim e1/nodefault',
  ],
  'e1-storage-class-not-found/healed': ['claim-class-missing: PersistentVolumeClaim e1/empty'],
  'e2-wffc-pending/final': [
    'consumer-bypasses-scheduler: Pod e2/pinned',
    'claim-waits-for-consumer: PersistentVolumeClaim e2/lonely',
  ],
  'e3-zone-conflict/cordoned': [
    'volume-topology-conflict (no-node): PersistentVolume pvc-99a27207-421c-4353-adc5-0610e48f0941',
  ],
  'e3-zone-conflict/final': [
    'volume-topology-conflict (no-node): PersistentVolume pvc-99a27207-421c-4353-adc5-0610e48f0941',
  ],
  'e3-zone-conflict/forced': [
    'multi-attach-live-node: Pod e3/p2',
    'volume-topology-conflict (pod-constraint): PersistentVolume pvc-99a27207-421c-4353-adc5-0610e48f0941',
  ],
  'e4-provisioning-errors/final': [
    'driver-not-installed: PersistentVolumeClaim e4/nobody',
    'claim-provisioning-failed (parameters): PersistentVolumeClaim e4/inv-w',
    'claim-provisioning-failed (parameters): PersistentVolumeClaim e4/inv',
    'claim-provisioning-failed (permission): PersistentVolumeClaim e4/perm-w',
    'claim-provisioning-failed (permission): PersistentVolumeClaim e4/perm',
    'claim-provisioning-failed (quota): PersistentVolumeClaim e4/quota-w',
    'claim-provisioning-failed (quota): PersistentVolumeClaim e4/quota',
  ],
  'e5-selected-node-gone/final': [],
  'f1-stale-volumeattachment/handmade': [
    'attachment-stale: VolumeAttachment csi-2ac05eca2d766f1b0c960c07b1b7581676782b651d0679d369a5ccb640e4f4b3',
  ],
  'f1-stale-volumeattachment/handmade-blocks': [
    'attachment-stale: VolumeAttachment csi-2ac05eca2d766f1b0c960c07b1b7581676782b651d0679d369a5ccb640e4f4b3',
  ],
  'f1-stale-volumeattachment/handmade-healed': [],
  'f1-stale-volumeattachment/healed': [],
  'f1-stale-volumeattachment/stale': [
    'attachment-stale: VolumeAttachment csi-294b2c81d1a719aa0f7bd29714a198f46a73cc735eb7a7f6e1e0c0fddc4d361d',
  ],
  'f2-va-stuck-deleting-no-attacher/fault': [
    'detach-failed: VolumeAttachment csi-e502bdd848542ae2f8062a1ebc61e2efd49c674d3308e5ec86668dc2cf36251f',
  ],
  'f2-va-stuck-deleting-no-attacher/healed': [],
  'f2-va-stuck-deleting-no-attacher/two-vas': [
    'detach-failed: VolumeAttachment csi-e502bdd848542ae2f8062a1ebc61e2efd49c674d3308e5ec86668dc2cf36251f',
  ],
  'f4-unmount-blocked-on-live-node/fault': ['unmount-stuck (unknown): Node n1'],
  'f4-unmount-blocked-on-live-node/healed': [],
  'f4-unmount-blocked-on-live-node/unpublish-fails': ['unmount-stuck (unknown): Pod f4/q'],
  'g1-statefulset-three-pods-stuck/containercreating': [
    'multi-attach-node-down: Node n1',
    'statefulset-halted: StatefulSet g1/db',
  ],
  'g1-statefulset-three-pods-stuck/healed': [],
  'g1-statefulset-three-pods-stuck/terminating': [
    'multi-attach-node-down: Node n1',
    'statefulset-halted: StatefulSet g1/db',
  ],
  'g1p-statefulset-parallel-three-containercreating/article': [
    'multi-attach-node-down: Node n1',
    'claim-held-by-pod: PersistentVolumeClaim g1p/data-db-1',
    'claim-held-by-pod: PersistentVolumeClaim g1p/data-db-2',
  ],
  'g2-rwop-conflict/final': ['rwop-conflict: Pod g2/one'],
  'g2-rwop-conflict/forced': [
    'rwop-conflict: Pod g2/one',
    'mount-failed (unknown): PersistentVolume pvc-b2241326-ef2a-4af1-9e82-3bfa27e5df15',
  ],
  'g3-volume-limit/final': [],
  'g3-volume-limit/resource-exhausted': [
    'volume-limit-reached (scheduler): Node n4',
    'volume-limit-reached (backend): Node n4',
  ],
  'g3b-attach-limit-reported-by-driver/final': ['volume-limit-reached (backend): Node n2'],
  'g3b-attach-limit-reported-by-driver/rejected': ['volume-limit-reached (backend): Node n2'],
  'g4-driver-missing-on-node/fault': ['driver-missing-on-node: CSINode n2'],
  'g4-driver-missing-on-node/healed': [],
  'g4-driver-missing-on-node/prevent': ['driver-missing-on-node: CSINode n2'],
  'g5-resize-infeasible/healed': [],
  'g5-resize-infeasible/infeasible': ['resize-failed (infeasible): PersistentVolumeClaim g5/data'],
  'g5-resize-infeasible/internal-error': ['resize-failed (backend): PersistentVolumeClaim g5/data'],
  'g6-claim-lost/healed': [],
  'g6-claim-lost/lost': ['claim-lost: PersistentVolumeClaim g6/data'],
  'g6-claim-lost/va-stuck-pv-gone': [
    'attachment-volume-missing: VolumeAttachment csi-688af91d41a5d6dc92daf4a1f47e6c4b607002360f243e8531afb199ee0bc8f3',
    'claim-lost: PersistentVolumeClaim g6/data',
  ],
  'g7-released-retain-new-claim-pending/fault': [
    'claim-ref-stale: PersistentVolume pvc-10fd58f6-93fa-4af9-ab73-549991c0ae68',
  ],
  'g7-released-retain-new-claim-pending/healed': [],
  'g8-statefulset-failedcreate-pvc-deleting/final': [
    'claim-held-by-foreign-finalizer: PersistentVolumeClaim g8b/data-db-0',
    'statefulset-halted: StatefulSet g8b/db',
  ],
  'g8-statefulset-pvc-being-deleted/final': ['claim-held-by-pod: PersistentVolumeClaim g8/data-db-0'],
  'g9-attach-detach-mount-errors/attach-error': [
    'attach-failed (backend): PersistentVolume pvc-3d625a74-31f5-44af-95b7-37c9c1efacde',
  ],
  'g9-attach-detach-mount-errors/detach-error': [
    'detach-failed: VolumeAttachment csi-736c589bfba2030f4439f1520b1f374711c3c3cfd76a9a5d189ecbba06162e80',
  ],
  'g9-attach-detach-mount-errors/healed': [],
  'g9-attach-detach-mount-errors/mount-error': [
    'mount-failed (unknown): PersistentVolume pvc-58f604bc-f0d9-4179-ac3c-111475daa693',
  ],
  'g9-attach-detach-mount-errors/two-attachments': [
    'detach-failed: VolumeAttachment csi-736c589bfba2030f4439f1520b1f374711c3c3cfd76a9a5d189ecbba06162e80',
  ],
  'h-api-techniques/final': [
    'driver-not-installed: PersistentVolume pv2',
    'volume-reclaim-failed: PersistentVolume pv3',
    'volume-released-retained: PersistentVolume pv1',
  ],
  'i1-snapshots/fault': [
    'claim-held-by-snapshot: PersistentVolumeClaim i1/data',
    'snapshot-failed (source-missing): VolumeSnapshot i1/s3',
  ],
  'i1-snapshots/final': [
    'claim-held-by-snapshot: PersistentVolumeClaim i1/data',
    'claim-class-missing: PersistentVolumeClaim i1/small',
    'snapshot-failed (source-missing): VolumeSnapshot i1/s3',
    'snapshot-deletion-stuck: VolumeSnapshot i1/s1',
  ],
  'i1-snapshots/healed': [
    'claim-held-by-snapshot: PersistentVolumeClaim i1/data',
    'snapshot-failed (source-missing): VolumeSnapshot i1/s3',
  ],
  'i11-hang-container-stop/final': ['unmount-stuck (unknown): Pod i11/p'],
  'i2-generic-ephemeral/final': [
    'ephemeral-claim-conflict: PersistentVolumeClaim i2/q-scratch',
    'claim-waits-for-consumer: PersistentVolumeClaim i2/q-scratch',
  ],
  'i3-serviceaccount-admission-on/final': [],
  'i5-disable-force-detach/healed': [],
  'i5-disable-force-detach/stays': [],
  'i6-single-node-full-disruption/final': [],
  'i8-smallest-timers/final': [],
  'i9-node-reboot-keeps-root-dir/final': [],
  'j1-harm-va-deleted-on-live-node/after-second-delete': [],
  'j1-harm-va-deleted-on-live-node/reattached-same-node': [],
  'j2-harm-force-delete-on-partitioned-node/after-return': [],
  'j2-harm-force-delete-on-partitioned-node/double': [],
  'j3-harm-va-finalizer-nulled/final': [
    'attached-outside-kubernetes: PersistentVolume pvc-308086dc-83f9-4178-9e1d-ddaad7ccd61b',
  ],
  'z-v1.34.4-multi-attach/final': ['multi-attach-live-node: Pod o1/two'],
};

let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = await loadCatalogue();
});

function diagnoseRecorded(file: string, laterMs: number): SpokenReport {
  const { objects, latest } = readRecorded(file);
  return diagnoseObjects(objects, { kind: 'Cluster' }, catalogue, { now: latest + laterMs });
}

function findingsOf(report: SpokenReport): readonly string[] {
  return report.findings.map(
    ({ fault, reason, subject }) => `${fault}${reason ? ` (${reason})` : ''}: ${describeRef(subject)}`,
  );
}

it('every recorded moment is in the table', () => {
  expect(Object.keys(expected).toSorted()).toEqual(recordedFiles());
});

describe('a recorded state whose grace times are over has its faults and no others', () => {
  it.each(Object.entries(expected))('%s', (file, findings) => {
    const report = diagnoseRecorded(file, minutes(20));
    expect(findingsOf(report)[0]).toBe(findings[0]);
    expect(findingsOf(report).toSorted()).toEqual(findings.toSorted());
    expect(report.unknown).toEqual([]);
    expect(report.unexplained).toEqual([]);
  });
});

it('with the default timers a dead node is found at the very moment of the recording', () => {
  const report = diagnoseRecorded('default-timers-dead-node/multiattach-used-by', 0);
  expect(findingsOf(report)).toContain('multi-attach-node-down: Node n1');
});

it('two stuck claims, three waiting pods and a dead node are one cause and its effects', () => {
  const { findings } = diagnoseRecorded('g1p-statefulset-parallel-three-containercreating/article', minutes(20));
  const [cause, ...effects] = findings;
  expect(cause?.affected.map(describeRef)).toEqual(
    expect.arrayContaining(['Pod g1p/db-0', 'Pod g1p/db-1', 'Pod g1p/db-2', 'StatefulSet g1p/db']),
  );
  expect(effects.map(({ causedBy }) => causedBy)).toEqual([cause?.id, cause?.id]);
  for (const effect of effects) expect(effect.offers[0]?.remediation).toBe('set-reclaim-policy-retain');
});

it('what is recorded about a fault outside the catalogue at hand is unexplained, never clear', () => {
  const stuck = [
    'f2-va-stuck-deleting-no-attacher/fault',
    'g4-driver-missing-on-node/fault',
    'g9-attach-detach-mount-errors/mount-error',
  ];
  for (const file of stuck) {
    const { objects, latest } = readRecorded(file);
    const empty = { faults: [], remediations: [] };
    const report = diagnoseObjects(objects, { kind: 'Cluster' }, empty, { now: latest + minutes(20) });
    expect(report.unexplained).not.toEqual([]);
  }
});
