import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { Cluster } from './cluster/cluster.ts';

/** What the bot asks with; times and steps in seconds. */
const asked = z.object({
  query: z.string(),
  time: z.coerce.number().optional(),
  start: z.coerce.number().optional(),
  end: z.coerce.number().optional(),
  step: z.coerce.number().positive().optional(),
});

/** Inodes of a file system of any size: the simulated workloads make few files. */
const INODES = 1_310_720;
const MOST_POINTS = 200;

/**
 * As much of the HTTP API of Prometheus as the bot asks for: what kubelets would have measured of the volumes that a
 * scenario has written to. It understands no PromQL. An instant query gets the claims that are nearly full, a range query
 * the four metrics of every claim whose name the query holds.
 */
export async function servePrometheus(cluster: Cluster): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const parameters = asked.safeParse(Object.fromEntries(new URLSearchParams(body)));
      const path = (request.url ?? '').replace(/^\/api\/v1\//, '');
      if (!parameters.success)
        return send(response, 400, { status: 'error', errorType: 'bad_data', error: 'no query' });
      const { query, time = 0, start = time, end = time, step = 60 } = parameters.data;
      if (path === 'query')
        return send(response, 200, {
          status: 'success',
          data: { resultType: 'vector', result: nearlyFull(cluster, time) },
        });
      if (path === 'query_range')
        return send(response, 200, {
          status: 'success',
          data: { resultType: 'matrix', result: levels(cluster, query, timesOf(start, end, step)) },
        });
      return send(response, 404, { status: 'error', errorType: 'not_found', error: 'no such path' });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

interface Mounted {
  readonly labels: { readonly namespace: string; readonly persistentvolumeclaim: string };
  readonly size: number;
  /** In bytes, at a time in seconds. */
  freeAt(seconds: number): number;
}

/** Claims of whose volumes it is known what is written; a resize changes the size for all of the past, too. */
function mounted({ store, backend }: Cluster): readonly Mounted[] {
  return store.list('persistentvolumeclaims').flatMap((claim) => {
    const volume = store.get('persistentvolumes', undefined, claim.spec.volumeName ?? '');
    const handle = volume?.spec.csi?.volumeHandle ?? '';
    const size = backend.get(handle)?.sizeBytes;
    if (size === undefined || backend.writtenAt(handle, 0) === undefined) return [];
    return {
      labels: { namespace: claim.metadata.namespace ?? '', persistentvolumeclaim: claim.metadata.name },
      size,
      freeAt: (seconds) => size - (backend.writtenAt(handle, seconds * 1000) ?? 0),
    };
  });
}

function nearlyFull(cluster: Cluster, time: number): readonly object[] {
  return mounted(cluster).flatMap(({ labels, size, freeAt }) => {
    const share = freeAt(time) / size;
    return share < 0.15 ? [{ metric: labels, value: [time, String(share)] }] : [];
  });
}

function levels(cluster: Cluster, query: string, times: readonly number[]): readonly object[] {
  const named = mounted(cluster).filter(({ labels }) => query.includes(labels.persistentvolumeclaim));
  return named.flatMap(({ labels, size, freeAt }) => {
    const series = (name: string, valueAt: (time: number) => number) => ({
      metric: { __name__: `kubelet_volume_stats_${name}`, ...labels },
      values: times.map((time) => [time, String(Math.round(valueAt(time)))]),
    });
    return [
      series('available_bytes', freeAt),
      series('capacity_bytes', () => size),
      series('inodes_free', () => INODES * 0.9),
      series('inodes', () => INODES),
    ];
  });
}

function timesOf(start: number, end: number, step: number): readonly number[] {
  const count = Math.min(MOST_POINTS, Math.floor((end - start) / step) + 1);
  return Array.from({ length: Math.max(0, count) }, (_, i) => start + i * step);
}
