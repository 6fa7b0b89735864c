import { applyPatch, type Operation } from 'rfc6902';
import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/domain/objects.ts';
import { effectOf } from '../../src/domain/write.ts';
import { recreateVolumeObject } from '../../src/remediations/recreate-volume-object.ts';
import { rawAttachment, rawClaim, rawVolume } from '../support/objects.ts';
import { toCluster } from '../support/fixture.ts';

const finalizers = [
  'kubernetes.io/pv-protection',
  'external-attacher/disk-example-com',
  'external-provisioner.volume.kubernetes.io/finalizer',
];
const claim = rawClaim('data', 'shop');
const lostClaim = { ...claim, status: { phase: 'Lost' } };
const attachment = rawAttachment('pv-data', 'n1');
const params = { volume: 'pv-data', uid: 'u-pv-data' };

function oldVolume(): JsonObject {
  const raw = rawVolume(
    'data',
    'shop',
    { persistentVolumeReclaimPolicy: 'Retain' },
    { finalizers, deletionTimestamp: 'NOW-1h', deletionGracePeriodSeconds: 0 },
  );
  return structuredClone(raw) as JsonObject;
}

it('walks from the deleted object to the new one, and waits only for the name to be free', () => {
  const begin = toCluster([oldVolume(), claim, attachment]);
  expect(recreateVolumeObject.preflight(params, begin)).toEqual([]);
  const writes = recreateVolumeObject.plan(params, begin);
  const live = oldVolume();
  const held: boolean[] = [];
  for (const write of writes.slice(0, -1)) {
    expect(effectOf(write, live)).toBe('open');
    const errors = applyPatch(live, structuredClone(write.body) as unknown as Operation[]);
    expect(errors.filter((error) => error !== null)).toEqual([]);
    expect(effectOf(write, live)).toBe('applied');
    held.push(recreateVolumeObject.settled(held.length + 1, params, toCluster([live, claim, attachment])));
  }
  expect(live['metadata']).toMatchObject({ finalizers: [] });
  expect(held).toEqual([true, true, false]);
  expect(recreateVolumeObject.settled(3, params, toCluster([lostClaim, attachment]))).toBe(true);

  const create = writes.at(-1);
  if (create?.verb !== 'create') throw new Error('the last write is no create');
  expect(effectOf(create, undefined)).toBe('open');
  const made = asCreated(create.body);
  expect(effectOf(create, made)).toBe('applied');
  expect(recreateVolumeObject.verify(params, toCluster([made, lostClaim, attachment]))).toBe('pending');
  expect(recreateVolumeObject.verify(params, toCluster([made, claim, attachment]))).toBe('done');
});

it('goes on after a crash at any place, because what is done already is seen to be done', () => {
  const writes = recreateVolumeObject.plan(params, toCluster([oldVolume(), claim]));
  for (const write of writes.slice(0, -1)) expect(effectOf(write, undefined)).toBe('applied');
  const create = writes.at(-1);
  if (create?.verb !== 'create') throw new Error('the last write is no create');
  // The old object still stands in the way of its own successor.
  expect(effectOf(create, oldVolume())).toBe('open');
  const made = asCreated(create.body);
  for (const write of writes) expect(effectOf(write, made)).toBe('applied');
  // Somebody made another volume under that name meanwhile.
  const other = { ...made, spec: { csi: { driver: 'disk.example.com', volumeHandle: 'other' } } };
  expect(effectOf(create, other)).toBe('other');
});

/** As the API server and the volume controller leave it. */
function asCreated(body: JsonObject): JsonObject {
  return {
    ...body,
    metadata: { ...(body['metadata'] as JsonObject), uid: 'u-new', creationTimestamp: 'NOW' },
    status: { phase: 'Bound' },
  };
}
