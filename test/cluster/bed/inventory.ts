import type { BackendVolume, JsonObject } from '../../../src/domain/objects.ts';
import { refOf } from '../../../src/domain/ref.ts';
import { apiVersionOf } from '../../../src/domain/resources.ts';
import { verbatim } from '../../../src/domain/text.ts';
import { valueAt, type Write } from '../../../src/domain/write.ts';
import type { BackendAccess, WriteResult } from '../../../src/ports.ts';
import type { DiskVolume } from './backend.ts';
import type { Bed } from './bed.ts';

/**
 * The product's own ports over the storage system of a bed. A volume of this cluster is known by its tag, which holds the
 * name of the cluster; it was first seen when it was made and last seen now, by the clock that the scenario has moved.
 */
export function backendOf(bed: Bed, now: () => number): BackendAccess {
  const read = async (disk: DiskVolume) =>
    toVolume(disk, {
      clusterId: disk.tags[`kubernetes.io/cluster/${bed.name}`] === 'owned' ? await bed.uid() : '',
      seenAt: now(),
      snapshots: bed.disks.taken.get(disk.handle) ?? [],
    });
  const find = async (handle: string) => {
    const disk = await bed.disks.find(handle);
    return disk && read(disk);
  };
  return {
    inventory: {
      list: async () => Promise.all((await bed.disks.volumes()).map(read)),
      async get(handle) {
        const volume = await find(handle);
        return volume && toObject(volume);
      },
    },
    writer: {
      async write(write, { dryRun }): Promise<WriteResult> {
        const volume = await find(write.name);
        if (!volume) return { kind: 'notFound', says: verbatim(`there is no volume ${write.name}`) };
        const [node] = volume.attachedTo;
        if (node !== undefined) return { kind: 'conflict', says: verbatim(`${write.name} is attached to ${node}`) };
        if (!isAllowed(write, volume))
          return { kind: 'conflict', says: verbatim(`${write.name} is not as it was planned`) };
        if (!dryRun) await carryOut(write, bed);
        const after = await find(write.name);
        return { kind: 'applied', object: after && toObject(after) };
      },
    },
  };
}

/** Every test of a patch, as the system itself would check it with the change. */
function isAllowed(write: Write, volume: BackendVolume): boolean {
  if (write.verb !== 'patch') return write.verb === 'delete';
  const live = toObject(volume);
  const tests = write.body.filter(({ op }) => op === 'test');
  return tests.every(
    (test) => 'value' in test && JSON.stringify(valueAt(live, test.path)) === JSON.stringify(test.value),
  );
}

async function carryOut(write: Write, bed: Bed): Promise<void> {
  if (write.verb === 'delete') return bed.disks.lose(write.name);
  if (write.verb !== 'patch') throw new Error(`the storage system has no ${write.verb}`);
  const names = write.body.flatMap((operation) => {
    const value = operation.op === 'add' ? operation.value : null;
    if (typeof value !== 'object' || value === null || !('name' in value)) return [];
    return typeof value['name'] === 'string' ? [value['name']] : [];
  });
  bed.disks.taken.set(write.name, [...(bed.disks.taken.get(write.name) ?? []), ...names]);
}

function toVolume(
  disk: DiskVolume,
  seen: { readonly clusterId: string; readonly seenAt: number; readonly snapshots: readonly string[] },
): BackendVolume {
  const meta = { namespace: null, name: disk.handle, uid: disk.handle };
  return {
    resource: 'backendvolumes',
    ref: refOf('backendvolumes', meta),
    ...meta,
    createdAt: Date.parse(disk.createdAt),
    deletedAt: undefined,
    graceSeconds: undefined,
    finalizers: [],
    annotations: {},
    labels: {},
    owners: [],
    driver: disk.driver,
    clusterId: seen.clusterId,
    attachedTo: disk.publishedTo,
    firstSeenAt: Date.parse(disk.createdAt),
    lastSeenAt: seen.seenAt,
    snapshots: seen.snapshots.map((name) => ({ name, ready: true })),
  };
}

/** As it stands in a saved state; a handle is the only uid that a volume of a storage system has. */
function toObject(volume: BackendVolume): JsonObject {
  const iso = (ms: number | undefined) => new Date(ms ?? 0).toISOString();
  const { name, driver, clusterId, createdAt, attachedTo, firstSeenAt, lastSeenAt, snapshots } = volume;
  return {
    apiVersion: apiVersionOf('backendvolumes'),
    kind: 'BackendVolume',
    metadata: { name, uid: name },
    spec: {
      driver,
      clusterId,
      createdAt: iso(createdAt),
      attachedTo,
      seenAt: [iso(firstSeenAt), iso(lastSeenAt)],
      snapshots: snapshots.map(({ name: of, ready }) => ({ name: of, ready })),
    },
  };
}
