import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Cluster } from '../../src/domain/cluster.ts';
import { effectOf, type Write } from '../../src/domain/write.ts';
import { withInventory } from '../../src/kube/inventory.ts';
import { backendAccess, serveBackend } from '../../src/playground/backend.ts';
import { Backend } from '../../src/playground/cluster/backend.ts';
import type { BackendAccess, BackendWriter } from '../../src/ports.ts';
import { deleteBackendVolume } from '../../src/remediations/delete-backend-volume.ts';
import { NOW, toCluster } from '../support/fixture.ts';

const signal = new AbortController().signal;
const CLUSTER = 'd2c9a9c0-0000-4000-8000-000000000001';
const HANDLE = 'pool/a.b/vol#1';
const ORPHAN = {
  handle: HANDLE,
  name: 'pvc-1',
  driver: 'disk.example.com',
  clusterId: CLUSTER,
  createdAt: '2026-10-01T00:00:00Z',
  zone: 'a',
  sizeBytes: 1,
  seenAt: ['2026-11-29T00:00:00Z', '2026-11-30T11:59:00Z'],
} as const;

let backend: Backend;
let server: Awaited<ReturnType<typeof serveBackend>>;
let access: BackendAccess;

beforeEach(async () => {
  backend = new Backend({ now: () => NOW });
  backend.load(ORPHAN);
  server = await serveBackend(backend);
  access = backendAccess(server.url);
});

afterEach(() => server.close());

function writer(): BackendWriter {
  if (!access.writer) throw new Error('it has no writer');
  return access.writer;
}

function write(planned: Write, dryRun = false) {
  return writer().write(planned, { auditId: 'a-1', dryRun }, signal);
}

/** What the remediation plans for the orphan: its snapshot, then its end. */
async function planned(): Promise<readonly [Write, Write]> {
  const backendvolumes = await access.inventory.list(signal);
  const { identity, now, objects, unread, podCoverage, source } = toCluster([]);
  const cluster = new Cluster({
    identity,
    now,
    unread,
    podCoverage,
    source,
    objects: { ...objects, backendvolumes },
  });
  const [first, second] = deleteBackendVolume.plan({ handle: HANDLE, driver: ORPHAN.driver }, cluster);
  if (!first || !second) throw new Error('no plan of two writes');
  return [first, second];
}

describe('the storage backend, over HTTP', () => {
  it('snapshots a volume, then deletes it, each recognisable afterwards', async () => {
    for (const one of await planned()) {
      expect(effectOf(one, await access.inventory.get(HANDLE, signal))).toBe('open');
      expect((await write(one)).kind).toBe('applied');
      expect(effectOf(one, await access.inventory.get(HANDLE, signal))).toBe('applied');
    }
    expect(backend.get(HANDLE)).toBeUndefined();
    expect(backend.snapshots().map(({ source }) => source)).toEqual([HANDLE]);
    expect(backend.calls().map(({ call }) => call)).toEqual(['CreateSnapshot', 'DeleteVolume']);
  });

  it('changes nothing in a dry run, and says whether it would', async () => {
    for (const one of await planned()) expect((await write(one, true)).kind).toBe('applied');
    expect(backend.calls()).toEqual([]);
    const [snapshot] = await planned();
    backend.publish(HANDLE, 'i-1');
    expect((await write(snapshot, true)).kind).toBe('conflict');
  });

  it('refuses both when the volume was attached in the meantime', async () => {
    const writes = await planned();
    backend.publish(HANDLE, 'i-1');
    for (const one of writes) expect((await write(one)).kind).toBe('conflict');
    expect(backend.calls().map(({ call }) => call)).toEqual(['ControllerPublishVolume']);
  });

  it('refuses a volume of another cluster that has the same handle', async () => {
    const [snapshot] = await planned();
    backend.load({ ...ORPHAN, clusterId: 'another' });
    expect((await write(snapshot)).kind).toBe('conflict');
    expect(backend.snapshots()).toEqual([]);
  });

  it('says that a volume is not there, and never that a missing path is a missing volume', async () => {
    const [snapshot, deletion] = await planned();
    backend.delete(HANDLE);
    expect((await write(snapshot)).kind).toBe('notFound');
    expect((await write(deletion)).kind).toBe('notFound');
    await expect(access.inventory.get(HANDLE, signal)).resolves.toBeUndefined();
    const astray = backendAccess(`${server.url}/elsewhere`);
    await expect(astray.inventory.get(HANDLE, signal)).rejects.toThrow('404');
    expect((await astray.writer?.write(deletion, { auditId: 'a', dryRun: false }, signal))?.kind).toBe('unknown');
  });

  it('takes no write but these two', async () => {
    const [snapshot, deletion] = await planned();
    if (snapshot.verb !== 'patch') throw new Error('the snapshot is no patch');
    if (deletion.verb !== 'delete') throw new Error('the end is no deletion');
    const foreign: readonly Write[] = [
      { ...snapshot, body: snapshot.body.filter(({ path }) => path !== '/spec/clusterId') },
      { ...snapshot, body: [...snapshot.body, { op: 'remove', path: '/spec' }] },
      { ...snapshot, resource: 'persistentvolumes' },
      { ...deletion, uid: 'another' },
    ];
    for (const one of foreign) expect((await write(one)).kind).toBe('invalid');
    expect(backend.calls()).toEqual([]);
  });

  it('leaves it open what happened when it does not answer', async () => {
    const [snapshot] = await planned();
    await server.close();
    expect((await write(snapshot)).kind).toBe('unknown');
    await expect(access.inventory.get(HANDLE, signal)).rejects.toThrow();
    server = await serveBackend(backend);
  });

  it('is read beside the cluster by the same reader', async () => {
    const reader = withInventory(
      {
        name: 'prod',
        identity: () => Promise.resolve({ name: 'prod', uid: CLUSTER }),
        read: () =>
          Promise.resolve({ cluster: toCluster([]), cost: { requests: 0, objects: 0, bytes: 0, milliseconds: 0 } }),
        get: (resource) => Promise.resolve({ kind: resource }),
      },
      access,
    );
    await expect(reader.get('pods', 'shop', 'p', signal)).resolves.toEqual({ kind: 'pods' });
    await expect(reader.get('backendvolumes', null, HANDLE, signal)).resolves.toMatchObject({
      metadata: { uid: HANDLE },
    });
    const { cluster } = await reader.read({ scope: { kind: 'Cluster' }, needs: ['backendvolumes'] }, signal);
    expect(cluster.writesBackend).toBe(true);
    expect(cluster.objects.backendvolumes.map(({ name }) => name)).toEqual([HANDLE]);
  });
});
