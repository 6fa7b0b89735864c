import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { Transient } from '../domain/errors.ts';
import type { BackendVolume } from '../domain/objects.ts';
import { refOf } from '../domain/ref.ts';
import type { BackendInventory } from '../ports.ts';
import type { Backend } from './cluster/backend.ts';

const time = z.iso.datetime().transform((text) => Date.parse(text));

const item = z.object({
  handle: z.string(),
  driver: z.string(),
  clusterId: z.string(),
  createdAt: time,
  attachedTo: z.array(z.string()),
  seenAt: z.tuple([time, time]),
});

/** Serves the simulated backend's inventory as a storage system would: JSON over HTTP on loopback. */
export async function serveBackend(backend: Backend): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/volumes') {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(backend.inventory()));
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

/** The inventory port over that address. */
export function backendInventory(url: string): BackendInventory {
  return {
    async list(signal) {
      const response = await fetch(url, {
        signal: AbortSignal.any([signal, AbortSignal.timeout(5000)]),
        redirect: 'error',
      });
      if (!response.ok) throw new Transient(`the backend answered ${response.status}`);
      return z
        .array(item)
        .parse(await response.json())
        .map(toVolume);
    },
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
  };
}
