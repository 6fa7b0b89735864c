import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface AskedOf {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly parameters: URLSearchParams;
}

/** A far end that answers as a test says, and keeps what it was asked. */
export async function fakePrometheus(answer: (asked: AskedOf, response: ServerResponse) => unknown) {
  const asked: AskedOf[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const one = { path: request.url ?? '', headers: request.headers, parameters: new URLSearchParams(body) };
      asked.push(one);
      const says = answer(one, response);
      if (says === undefined || response.writableEnded) return;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(says));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

export function matrix(
  result: readonly { metric: Record<string, string>; values: readonly (readonly [number, string])[] }[],
) {
  return { status: 'success', data: { resultType: 'matrix', result } };
}

export function vector(metrics: readonly Record<string, string>[]) {
  return {
    status: 'success',
    data: { resultType: 'vector', result: metrics.map((metric) => ({ metric, value: [0, '0.01'] })) },
  };
}

/** The four metrics of one claim, every quarter of an hour up to `now`, in seconds. */
export function levelsOf(
  labels: Record<string, string>,
  now: number,
  {
    free,
    perHour = 0,
    capacity = 1000,
    inodes = 100,
  }: { free: number; perHour?: number; capacity?: number; inodes?: number },
) {
  const times = Array.from({ length: 25 }, (_, i) => now / 1000 - (24 - i) * 900);
  const series = (name: string, value: (hoursAgo: number) => number) => ({
    metric: { __name__: `kubelet_volume_stats_${name}`, ...labels },
    values: times.map((time, i) => [time, String(value((24 - i) / 4))] as const),
  });
  return [
    series('available_bytes', (hours) => capacity * (free + perHour * hours)),
    series('capacity_bytes', () => capacity),
    series('inodes_free', () => inodes / 2),
    series('inodes', () => inodes),
  ];
}
