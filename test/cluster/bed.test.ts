import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type Bed, startBed } from './bed/bed.ts';
import { conditionOf, isReady, listAt, textAt } from './bed/objects.ts';

const { programs, whyNot } = inject('testbed');
let bed: Bed;

beforeAll(async () => {
  const machines = [{ name: 'n1' }, { name: 'n2', zone: 'z2', limit: 2 }, { name: 'n3' }];
  if (programs !== null) bed = await startBed('bed', programs, { machines, leaderElection: true });
});
afterAll(() => bed?.close());

describe('a bed', () => {
  it('has machines in zones, with the limits of their driver', async (context) => {
    if (programs === null) return context.skip(whyNot);
    const node = await bed.api.get('node n2');
    expect(node.metadata.labels?.['topology.kubernetes.io/zone']).toBe('z2');
    expect(listAt(await bed.api.get('CSINode n2'), 'spec.drivers')).toMatchObject([
      { nodeID: 'i-n2', allocatable: { count: 2 } },
    ]);
  });

  it('lets its components hold leases where a scenario asks for it', async (context) => {
    if (programs === null) return context.skip(whyNot);
    await bed.untilThere('Lease kube-system/kube-controller-manager');
    await bed.untilThere('Lease csi/external-attacher-leader-disk-csi-example-com');
  });

  it('has machines that fall silent and come back', async (context) => {
    if (programs === null) return context.skip(whyNot);
    bed.machine('n1').hang();
    const silent = await bed.untilNotReady('n1');
    expect(conditionOf(silent, 'Ready')).toBe('Unknown');
    bed.machine('n1').comeBack();
    await bed.untilReady('node n1');
  });

  it('has machines that reboot: another boot id, the same machine for the storage system', async (context) => {
    if (programs === null) return context.skip(whyNot);
    const before = textAt(await bed.api.get('node n1'), 'status.nodeInfo.bootID');
    await bed.machine('n1').reboot();
    await bed.until('another boot id', async () => {
      const now = textAt(await bed.api.get('node n1'), 'status.nodeInfo.bootID');
      return now !== before || undefined;
    });
    expect(listAt(await bed.api.get('CSINode n1'), 'spec.drivers')).toMatchObject([{ nodeID: 'i-n1' }]);
  });

  it('has machines that are replaced by another one of their name', async (context) => {
    if (programs === null) return context.skip(whyNot);
    await bed.machine('n3').replace();
    await bed.until('another id in the storage system', async () => {
      const drivers = listAt(await bed.api.find('CSINode n3'), 'spec.drivers');
      return drivers.some((driver) => textAt(driver, 'nodeID') === 'i-n3-2') || undefined;
    });
  });

  it('has components that die and are started again, each by itself', async (context) => {
    if (programs === null) return context.skip(whyNot);
    const attacher = bed.program('csi-attacher');
    const before = attacher.pid;
    await attacher.kill();
    expect(attacher.isRunning).toBe(false);
    attacher.start();
    expect(attacher.pid).not.toBe(before);
    expect(isReady(await bed.api.get('node n2'))).toBe(true);
  });

  it('shows the product a later time without waiting for it', (context) => {
    if (programs === null) return context.skip(whyNot);
    const before = bed.now();
    bed.moveClock(60_000);
    expect(bed.now() - before).toBeGreaterThanOrEqual(60_000);
    expect(bed.now() - before).toBeLessThan(70_000);
  });
});
