import { expect, it } from 'vitest';
import { failureOf, isAfterEffect, secretOf } from '../../src/domain/provisioning.ts';
import { toCluster } from '../support/fixture.ts';

/** A claim of the class `fast` that has waited for an hour, and what its provisioner said, the first error first. */
function failing(messages: readonly string[], parameters: Readonly<Record<string, string>> = {}) {
  const cluster = toCluster([
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'data',
        namespace: 'shop',
        uid: 'uid-data',
        creationTimestamp: 'NOW-1h',
        annotations: { 'volume.kubernetes.io/storage-provisioner': 'disk.example.com', team: 'blue' },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'fast',
        resources: { requests: { storage: '1Gi' } },
      },
      status: { phase: 'Pending' },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'fast', uid: 'uid-fast', creationTimestamp: 'NOW-3d' },
      provisioner: 'disk.example.com',
      parameters,
      volumeBindingMode: 'Immediate',
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'CSIDriver',
      metadata: { name: 'disk.example.com', uid: 'uid-driver', creationTimestamp: 'NOW-3d' },
      spec: { attachRequired: true },
    },
    ...messages.map((message, i) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `data.${i}`, namespace: 'shop', uid: `uid-event-${i}`, creationTimestamp: `NOW-${50 - i}m` },
      involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data', uid: 'uid-data' },
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message,
      firstTimestamp: `NOW-${50 - i}m`,
      lastTimestamp: 'NOW-1m',
      source: { component: 'disk.example.com_controller-0' },
    })),
  ]);
  const claim = cluster.findClaim('shop', 'data');
  if (!claim) throw new Error('no claim');
  const failure = failureOf(claim, cluster);
  if (!failure) throw new Error('no failure');
  return failure;
}

it.each([
  ['quota', "googleapi: Error 403: Quota 'SSD_TOTAL_GB' exceeded. Limit: 500.0 in region europe-west1., quotaExceeded"],
  ['quota', 'VolumeLimitExceeded: You have exceeded your maximum gp3 storage limit of 50 TiB in this region.'],
  ['quota', 'rpc error: code = OutOfRange desc = not enough free space in the volume group'],
  ['permission', "googleapi: Error 403: Required 'compute.disks.create' permission for 'projects/p', forbidden"],
  ['permission', 'WebIdentityErr: failed to retrieve credentials caused by: AccessDenied: Not authorized to perform'],
  ['permission', 'rpc error: code = Internal desc = rados: ret=-13, Permission denied'],
  ['permission', 'ServerFaultCode: Permission to perform this operation was denied.'],
  ['secret', "rpc error: code = Internal desc = missing ID field 'userID' in secrets"],
  ['secret', 'rpc error: code = InvalidArgument desc = provided secret is empty'],
  ['secret', 'error getting secret rbd in namespace ceph: secrets "rbd" not found'],
  ['topology', 'error generating accessibility requirements: no topology key found on CSINode node-a'],
  ['topology', "InvalidZone.NotFound: The zone 'eu-central-1x' does not exist."],
  ['parameters', 'rpc error: code = InvalidArgument desc = invalid parameter iops'],
  ['parameters', 'claim Selector is not supported'],
  ['parameters', 'rpc error: code = NotFound desc = pool "tank" not found'],
  ['parameters', 'rpc error: code = Internal desc = missing configuration for cluster ID "b1"'],
  ['no-answer', 'rpc error: code = DeadlineExceeded desc = context deadline exceeded'],
  ['backend', 'rpc error: code = Unavailable desc = connection error: desc = "transport: connection refused"'],
  ['backend', 'RequestLimitExceeded: Request limit exceeded.'],
  ['backend', 'rpc error: code = Internal desc = something broke'],
  ['unknown', 'something broke'],
])('%s: %s', (reason, message) => {
  expect(failing([message]).reason).toBe(reason);
  expect(failing([`failed to provision volume with StorageClass "fast": ${message}`]).error?.message).toContain(
    message,
  );
});

it('the first error of a series explains, whatever came after it', () => {
  const { reason, error, afterEffect } = failing([
    'rpc error: code = ResourceExhausted desc = quota exceeded',
    'rpc error: code = Aborted desc = operation already exists',
  ]);
  expect(reason).toBe('quota');
  expect(error?.message).toContain('quota exceeded');
  expect(afterEffect?.message).toContain('operation already exists');
});

it('an after-effect that came first does not hide the error behind it', () => {
  expect(failing(['an operation with the given Volume ID x already exists', 'PermissionDenied']).reason).toBe(
    'permission',
  );
});

it('a volume that vanished is a missing right only where the class has a key of its own', () => {
  const message = 'rpc error: code = Internal desc = InvalidVolume.NotFound: The volume vol-1 does not exist.';
  expect(failing([message], { kmsKeyId: 'arn:1' }).reason).toBe('permission');
  expect(failing([message]).reason).not.toBe('permission');
});

it.each([
  'rpc error: code = Aborted desc = an operation with the given Volume ID pvc-1 already exists',
  'Parameters on this idempotent request are inconsistent with parameters used in previous request(s)',
  'IdempotentParameterMismatch: the token was used before',
])('an after-effect: %s', (message) => {
  expect(isAfterEffect(message)).toBe(true);
});

/** As StorageClass parameters spell it. */
function template(key: string): string {
  return `$\{${key}}`;
}

it.each([
  ['the names as they stand', { name: 'rbd', namespace: 'ceph' }, 'ceph/rbd'],
  ['the namespace of the claim', { name: 'rbd', namespace: template('pvc.namespace') }, 'shop/rbd'],
  ['the name of the claim', { name: `${template('pvc.name')}-key`, namespace: 'ceph' }, 'ceph/data-key'],
  ['the name of the volume', { name: template('pv.name'), namespace: 'ceph' }, 'ceph/pvc-uid-data'],
  ['an annotation of the claim', { name: template("pvc.annotations['team']"), namespace: 'ceph' }, 'ceph/blue'],
])('the Secret of the class is named with its templates filled in: %s', (_, { name, namespace }, wanted) => {
  const secret = secretOf(
    failing(['provided secret is empty'], {
      'csi.storage.k8s.io/provisioner-secret-name': name,
      'csi.storage.k8s.io/provisioner-secret-namespace': namespace,
    }),
  );
  expect(`${secret?.namespace}/${secret?.name}`).toBe(wanted);
  expect(secret?.uid).toBeNull();
});
