import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { saysOf, Transient } from '../domain/errors.ts';
import type { BackendVolume, JsonObject } from '../domain/objects.ts';
import { refOf } from '../domain/ref.ts';
import { apiVersionOf } from '../domain/resources.ts';
import { en, type Text, verbatim, zh } from '../domain/text.ts';
import type { Write } from '../domain/write.ts';
import type { BackendAccess, BackendWriter, WriteResult } from '../ports.ts';
import { type Backend, BackendError } from './cluster/backend.ts';

const DEADLINE_MS = 5000;

const time = z.iso.datetime().transform((text) => Date.parse(text));

const item = z.object({
  handle: z.string(),
  driver: z.string(),
  clusterId: z.string(),
  createdAt: time,
  attachedTo: z.array(z.string()),
  seenAt: z.tuple([time, time]),
  snapshots: z.array(z.object({ name: z.string(), ready: z.boolean() })),
});

/** What a change asks for, and under which conditions: all of them are checked at the moment of the change. */
const change = z.discriminatedUnion('verb', [
  z.strictObject({ verb: z.literal('snapshot'), name: z.string(), clusterId: z.string(), dryRun: z.boolean() }),
  z.strictObject({ verb: z.literal('delete'), dryRun: z.boolean() }),
]);
type Change = z.infer<typeof change>;

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/** Serves the simulated backend as a storage system would: its volumes, snapshots and deletions, as JSON over HTTP on loopback. */
export async function serveBackend(backend: Backend): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void answer(backend, request).then(({ status, body }) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/volumes`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(backend: Backend, request: IncomingMessage): Promise<Answer> {
  const [, root, encoded, ...more] = (request.url ?? '').split('/');
  if (root !== 'volumes' || more.length > 0) return { status: 404, body: { error: 'no such path' } };
  if (encoded === undefined) {
    if (request.method !== 'GET') return { status: 405, body: { error: 'volumes are only listed' } };
    return { status: 200, body: backend.inventory() };
  }
  const handle = decodeURIComponent(encoded);
  const volume = backend.item(handle);
  if (!volume) return { status: 404, body: { error: 'NotFound', handle } };
  if (request.method === 'GET') return { status: 200, body: volume };
  const asked = change.safeParse(await jsonOf(request));
  if (request.method !== 'POST' || !asked.success) return { status: 400, body: { error: 'no change of a volume' } };
  return carryOut(backend, handle, asked.data);
}

async function jsonOf(request: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function carryOut(backend: Backend, handle: string, asked: Change): Answer {
  const volume = backend.item(handle);
  const [node] = volume?.attachedTo ?? [];
  if (node !== undefined) return { status: 409, body: { error: `volume ${handle} is attached to node ${node}` } };
  if (asked.verb === 'snapshot' && volume?.clusterId !== asked.clusterId)
    return { status: 409, body: { error: `volume ${handle} was made for cluster ${volume?.clusterId}` } };
  if (asked.dryRun) return { status: 200, body: volume };
  try {
    if (asked.verb === 'snapshot') backend.snapshot(handle, asked.name);
    else backend.delete(handle);
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    return { status: error.code === 'Internal' ? 500 : 409, body: { error: error.message } };
  }
  return { status: 200, body: backend.item(handle) ?? null };
}

/** The ports over that address. */
export function backendAccess(url: string): BackendAccess {
  return {
    inventory: {
      async list(signal) {
        const response = await request(url, signal);
        if (!response.ok) throw new Transient(answered(response.status));
        return z
          .array(item)
          .parse(await response.json())
          .map(toVolume);
      },
      async get(handle, signal) {
        const response = await request(`${url}/${encodeURIComponent(handle)}`, signal);
        if (response.status === 404 && notFound.safeParse(await response.json()).data?.handle === handle)
          return undefined;
        if (!response.ok) throw new Transient(answered(response.status));
        return toObject(await response.json());
      },
    },
    writer: backendWriter(url),
  };
}

/** A 404 of something in between says nothing about the volume. */
const notFound = z.object({ error: z.literal('NotFound'), handle: z.string() });
const failure = z.object({ error: z.string() });

function backendWriter(url: string): BackendWriter {
  return {
    async write(write, { auditId, dryRun }, signal): Promise<WriteResult> {
      const asked = changeOf(write, dryRun);
      if (!asked)
        return {
          kind: 'invalid',
          says: {
            en: en`the backend has no ${write.verb} of ${write.resource}`,
            zh: zh`存储后端不支持对 ${write.resource} 的 ${write.verb}`,
          },
        };
      try {
        const response = await request(`${url}/${encodeURIComponent(write.name)}`, signal, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'audit-id': auditId },
          body: JSON.stringify(asked),
        });
        return toResult(response.status, await response.json());
      } catch (error) {
        return { kind: 'unknown', says: saysOf(error) };
      }
    },
  };
}

/** Only what was planned for a backend: a snapshot with both of its conditions, and a deletion. */
function changeOf(write: Write, dryRun: boolean): Change | undefined {
  if (write.resource !== 'backendvolumes' || write.uid !== write.name) return undefined;
  if (write.verb === 'delete') return { verb: 'delete', dryRun };
  if (write.verb !== 'patch') return undefined;
  const parsed = snapshotPatch.safeParse(write.body);
  if (!parsed.success) return undefined;
  const [, { value: clusterId }, , { value }] = parsed.data;
  return { verb: 'snapshot', name: value.name, clusterId, dryRun };
}

const snapshotPatch = z.tuple([
  z.strictObject({ op: z.literal('test'), path: z.literal('/metadata/uid'), value: z.string() }),
  z.strictObject({ op: z.literal('test'), path: z.literal('/spec/clusterId'), value: z.string() }),
  z.strictObject({ op: z.literal('test'), path: z.literal('/spec/attachedTo'), value: z.array(z.never()) }),
  z.strictObject({
    op: z.literal('add'),
    path: z.literal('/spec/snapshots/-'),
    value: z.strictObject({ name: z.string() }),
  }),
]);

function toResult(status: number, body: unknown): WriteResult {
  const said = failure.safeParse(body).data?.error;
  const says = said === undefined ? answered(status) : verbatim(said);
  switch (status) {
    case 200:
      return { kind: 'applied', object: body === null ? undefined : toObject(body) };
    case 400:
      return { kind: 'invalid', says };
    case 403:
      return { kind: 'forbidden', says };
    case 404:
      return notFound.safeParse(body).success ? { kind: 'notFound', says } : { kind: 'unknown', says };
    case 409:
      return { kind: 'conflict', says };
    default:
      return { kind: 'unknown', says };
  }
}

function request(url: string, signal: AbortSignal, init: RequestInit = {}): Promise<Response> {
  return fetch(url, {
    ...init,
    signal: AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]),
    redirect: 'error',
  });
}

/** As it stands in a saved state, with the handle as the uid: a backend volume has no other. */
function toObject(body: unknown): JsonObject {
  const { handle, driver, clusterId, createdAt, attachedTo, seenAt, snapshots } = item.parse(body);
  const iso = (ms: number) => new Date(ms).toISOString();
  return {
    apiVersion: apiVersionOf('backendvolumes'),
    kind: 'BackendVolume',
    metadata: { name: handle, uid: handle },
    spec: { driver, clusterId, createdAt: iso(createdAt), attachedTo, seenAt: seenAt.map(iso), snapshots },
  };
}

/** A handle is the identity of a backend volume: it has no other uid. */
function toVolume(raw: z.infer<typeof item>): BackendVolume {
  const meta = { namespace: null, name: raw.handle, uid: raw.handle };
  return {
    resource: 'backendvolumes',
    ref: refOf('backendvolumes', meta),
    ...meta,
    createdAt: raw.createdAt,
    deletedAt: undefined,
    graceSeconds: undefined,
    finalizers: [],
    annotations: {},
    labels: {},
    owners: [],
    driver: raw.driver,
    clusterId: raw.clusterId,
    attachedTo: raw.attachedTo,
    firstSeenAt: raw.seenAt[0],
    lastSeenAt: raw.seenAt[1],
    snapshots: raw.snapshots,
  };
}

function answered(status: number): Text {
  return { en: en`the backend answered ${status}`, zh: zh`存储后端的答复是 ${status}` };
}
