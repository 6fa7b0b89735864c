import { describe, expect, it } from 'vitest';
import { lowerSizeOf, resizesOf, saysOffline } from '../../src/domain/resize.ts';
import { buildScope } from '../../src/domain/scope.ts';
import { toCluster } from '../support/fixture.ts';
import { rawClaim, rawVolume } from '../support/objects.ts';

function claimWith(requested: string, capacity: string | undefined, conditions: readonly unknown[] = []) {
  const raw = {
    ...rawClaim('data', 'shop', {}, { resources: { requests: { storage: requested } } }),
    status: { phase: 'Bound', ...(capacity === undefined ? {} : { capacity: { storage: capacity } }), conditions },
  };
  const cluster = toCluster([raw, rawVolume('data', 'shop', { capacity: { storage: capacity ?? '1Gi' } })]);
  const [claim] = cluster.objects.persistentvolumeclaims;
  if (!claim) throw new Error('the claim must parse');
  return { cluster, claim };
}

describe('the size that an infeasible request is lowered to', () => {
  it.each([
    ['100Gi', '1Gi', '2Gi'],
    ['100Gi', '1536Mi', '2Gi'],
    ['20Gi', '10G', '10Gi'],
    ['2Gi', '1Gi', '1025Mi'],
    ['1500Mi', '1Gi', '1025Mi'],
  ])('of %s when the claim has %s is %s', (requested, capacity, lower) => {
    expect(lowerSizeOf(claimWith(requested, capacity).claim)).toBe(lower);
  });

  it.each([
    ['1Gi', '1Gi'],
    ['1025Mi', '1Gi'],
    ['1Gi', undefined],
  ])('is none for %s when the claim has %s', (requested, capacity) => {
    expect(lowerSizeOf(claimWith(requested, capacity).claim)).toBeUndefined();
  });
});

describe('an error says that the driver resizes detached volumes only', () => {
  it.each([
    'Unable to expand shop/data because CSI driver d only supports offline expansion and volume is currently in-use',
    'azureDisk - disk resize is only supported on Unattached disk, current disk state: Attached',
    'Invalid volume: Volume status must be available to extend, current status: in-use',
    'Online volume expansion is not supported',
    'rpc error: code = FailedPrecondition desc = Volume vol-1 is published on node n1',
    'the volume must be detached before it can grow',
  ])('%s', (text) => {
    expect(saysOffline(text)).toBe(true);
  });

  it.each([
    undefined,
    '',
    'rpc error: code = Internal desc = timeout talking to array',
    'rpc error: code = Aborted desc = an operation with the given volume is already in progress',
    'rpc error: code = FailedPrecondition desc = pool is degraded',
    'operation is offline until Monday',
  ])('but not: %s', (text) => {
    expect(saysOffline(text)).toBe(false);
  });
});

describe('a resize', () => {
  const unused = { type: 'Unused', status: 'True', lastTransitionTime: 'NOW-3d' };

  it('is dated by its own conditions and not by others', () => {
    const { cluster } = claimWith('2Gi', '1Gi', [
      unused,
      { type: 'Resizing', status: 'True', lastTransitionTime: 'NOW-7m' },
    ]);
    const [resize] = resizesOf(cluster, buildScope(cluster, { kind: 'Cluster' }));
    expect(resize?.ageMs).toBe(7 * 60_000);
  });

  it('that nothing dates has no age', () => {
    const { cluster } = claimWith('2Gi', '1Gi', [unused]);
    const [resize] = resizesOf(cluster, buildScope(cluster, { kind: 'Cluster' }));
    expect(resize).toBeDefined();
    expect(resize?.ageMs).toBeUndefined();
  });

  it('that is done is none, whatever conditions say', () => {
    const { cluster } = claimWith('1Gi', '1Gi', [
      { type: 'FileSystemResizePending', status: 'True', lastTransitionTime: 'NOW-3d' },
    ]);
    expect(resizesOf(cluster, buildScope(cluster, { kind: 'Cluster' }))).toEqual([]);
  });
});
