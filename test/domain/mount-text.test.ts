import { describe, expect, it } from 'vitest';
import { kindOfMountError, missingObjectIn, optionsIn, unmountReasonOf } from '../../src/domain/mount-text.ts';

const mount = (text: string) => `MountVolume.MountDevice failed for volume "pv-1" : ${text}`;

describe('a mount error is told by the words that mean something', () => {
  it.each([
    [
      'filesystem',
      "'fsck' found errors on device /dev/sdb but could not correct them: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY",
    ],
    ['filesystem', "mount failed: exit status 32 ... can't read superblock on /dev/sdi"],
    ['filesystem', 'mount(2) system call failed: Structure needs cleaning.'],
    ['filesystem', 'blkid: error: /dev/sdb: Input/output error'],
    ['filesystem', 'mount: /x: bad superblock on /dev/sdb'],
    [
      'generic',
      'mount failed: exit status 32 Output: mount: /x: wrong fs type, bad option, bad superblock on /dev/sdd, missing codepage or helper program, or other error.',
    ],
    ['duplicate-uuid', 'XFS (sdd): Filesystem has duplicate UUID 1-2-3 - can not mount'],
    ['option', "fsconfig system call failed: xfs: Unknown parameter 'nobarrier'"],
    ['option', 'mount.nfs: an incorrect mount option was specified'],
    ['option', 'mount.nfs: requested NFS version or transport protocol is not supported'],
    ['option', 'mount error(22): Invalid argument'],
    ['permission', 'mount.nfs: access denied by server while mounting 10.1.1.5:/x'],
    ['permission', 'mount error(13): Permission denied'],
    ['permission', 'rpc error: code = PermissionDenied desc = no'],
    [
      'fs-type',
      'failed to mount the volume as "ext4", it already contains xfs. Mount error: mount failed: exit status 32',
    ],
    ['time-out', 'rpc error: code = DeadlineExceeded desc = context deadline exceeded'],
    ['time-out', 'mount failed: exit status 32 ... mount.nfs: Connection timed out'],
    ['refused', 'mount failed: exit status 32 ... mount.nfs: Connection refused'],
    ['refused', 'mount.nfs: No route to host'],
    ['in-use', 'rpc error: code = Internal desc = rbd image pool/csi-vol-1 is still being used'],
    ['unregistered', 'driver name disk.example.com not found in the list of registered CSI drivers'],
    ['object-missing', 'configmap "app-config" not found'],
    ['other', 'mount failed: exit status 32'],
    ['other', 'volume uses the ReadWriteOncePod access mode and is already in use by another pod'],
    [
      'other',
      'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /csi/csi.sock: connect: connection refused"',
    ],
    ['other', 'secrets "key" is forbidden: User "system:node:n1" cannot get: permission denied'],
    [
      'other',
      'mount failed: exit status 32\nMounting arguments: -t nfs s:/x /x\nOutput: mount.nfs: Input/output error',
    ],
  ] as const)('%s: %s', (kind, text) => {
    expect(kindOfMountError(mount(text))).toBe(kind);
  });
});

describe('a missing object is named as far as the text names it', () => {
  it.each([
    ['configmap "app.config" not found', { kind: 'ConfigMap', name: 'app.config', namespace: undefined }],
    ['configmaps "c" not found', { kind: 'ConfigMap', name: 'c', namespace: undefined }],
    [
      'fetching NodeStageSecretRef rook/key failed: kubernetes.io/csi: failed to find the secret key in the namespace rook with error: secrets "key" not found',
      { kind: 'Secret', name: 'key', namespace: 'rook' },
    ],
    ['couldn\'t get secret shop/key: secrets "key" not found', { kind: 'Secret', name: 'key', namespace: 'shop' }],
    ['persistentvolumeclaim "data" not found', undefined],
    ['fetching NodeStageSecretRef rook/key failed: secrets "key" is forbidden', undefined],
  ])('%s', (text, missing) => {
    expect(missingObjectIn(mount(text))).toEqual(missing);
  });
});

it('an option is blamed by name, and what the mount was given is read from its arguments', () => {
  const text =
    "Mounting arguments: -t xfs -o noatime,nobarrier /dev/sdd /x\nOutput: xfs: Unknown parameter 'nobarrier'";
  expect(optionsIn(mount(text))).toEqual({ blamed: ['nobarrier'], given: ['noatime', 'nobarrier'] });
});

describe('an unmount fails for the first reason that a text tells', () => {
  it.each([
    ['reference', ['GetDeviceMountRefs check failed: path is still mounted by other references [/x]']],
    ['stale-handle', ['lstat /x: stale NFS file handle']],
    ['stale-handle', ['umount: /x: Stale file handle.']],
    ['busy', ['umount: /x: target is busy.']],
    ['busy', ['remove /x: device or resource busy', 'Input/output error']],
    ['io-error', ['umount: /x: Input/output error']],
    ['unknown', ['rpc error: code = Internal desc = nsenter failed']],
    ['unknown', []],
  ] as const)('%s', (reason, messages) => {
    const errors = messages.map((message) => ({ message, volumeName: undefined, event: neverRead }));
    expect(unmountReasonOf(errors)).toBe(reason);
  });
});

const neverRead = {
  resource: 'events' as const,
  ref: { apiVersion: 'v1', kind: 'Event', namespace: 'shop', name: 'e', uid: 'u' },
  namespace: 'shop',
  name: 'e',
  uid: 'u',
  createdAt: 0,
  deletedAt: undefined,
  graceSeconds: undefined,
  finalizers: [],
  annotations: {},
  labels: {},
  owners: [],
  about: { kind: 'Pod', namespace: 'shop', name: 'p', uid: 'p' },
  type: 'Warning',
  reason: 'FailedUnMount',
  message: '',
  component: 'kubelet',
  lastAt: 0,
  firstAt: 0,
};
