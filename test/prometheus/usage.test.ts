import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { msToFull } from '../../src/domain/usage.ts';
import { endpointOf } from '../../src/prometheus/api.ts';
import { levels, nearlyFull, quote } from '../../src/prometheus/promql.ts';
import { openPrometheus } from '../../src/prometheus/usage.ts';
import { type AskedOf, fakePrometheus, levelsOf, matrix, vector } from '../support/prometheus.ts';

const NOW = Date.parse('2026-11-30T12:00:00Z');
const signal = AbortSignal.timeout(30_000);
const data = { namespace: 'shop', name: 'data' };
const labels = { namespace: 'shop', persistentvolumeclaim: 'data' };
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const part of open.splice(0)) await part.close();
});

async function prometheus(answer: Parameters<typeof fakePrometheus>[0], hasSeveralClusters = false) {
  const server = await fakePrometheus(answer);
  open.push(server);
  const source = (url = server.url) => openPrometheus({ url, hasSeveralClusters });
  const read = (claims: readonly (typeof data)[] | 'nearly full' = [data], cluster = 'prod') =>
    source().read({ cluster, claims, now: NOW }, signal);
  return { ...server, source, read };
}

describe('claims that are named', () => {
  it('take one question, and are told with their last six hours', async () => {
    const { read, asked } = await prometheus(() => matrix(levelsOf(labels, NOW, { free: 0.1, perHour: 0.01 })));
    const { claims, requests } = await read();
    expect(requests).toBe(1);
    expect(asked.map(({ path }) => path)).toEqual(['/api/v1/query_range']);
    expect(claims).toMatchObject([
      { ...data, at: NOW, source: 'prometheus', bytes: { capacity: 1000 }, inodes: { free: 0.5, capacity: 100 } },
    ]);
    expect(claims[0]?.bytes?.free).toBeCloseTo(0.1);
    expect(claims[0]?.bytes?.history).toHaveLength(25);
    expect(claims[0]?.bytes && msToFull(claims[0].bytes)).toBeCloseTo(10 * 3_600_000, -4);
  });

  it('and others of the same names are not mixed in', async () => {
    const other = { namespace: 'bank', persistentvolumeclaim: 'data' };
    const { read } = await prometheus(() =>
      matrix([...levelsOf(other, NOW, { free: 0.01 }), ...levelsOf(labels, NOW, { free: 0.5 })]),
    );
    const { claims } = await read();
    expect(claims.map(({ namespace }) => namespace)).toEqual(['shop']);
  });

  it('are not told when they were measured an hour ago for the last time, or have no size', async () => {
    const { read } = await prometheus(() => matrix(levelsOf(labels, NOW - 3_600_000, { free: 0.01 })));
    expect((await read()).claims).toEqual([]);
    const sizeless = await prometheus(() => matrix(levelsOf(labels, NOW, { free: 0.01, capacity: 0, inodes: 0 })));
    expect((await sizeless.read()).claims).toEqual([]);
  });
});

describe('a whole cluster', () => {
  it('takes two questions, however many claims there are', async () => {
    const { read, asked } = await prometheus(({ path }) =>
      path.endsWith('query') ? vector([labels]) : matrix(levelsOf(labels, NOW, { free: 0.02 })),
    );
    const { claims, requests } = await read('nearly full');
    expect([claims.length, requests]).toEqual([1, 2]);
    expect(asked.map(({ parameters }) => parameters.get('query'))).toEqual([
      nearlyFull(undefined),
      levels(undefined, [data]),
    ]);
  });

  it('takes one when nothing is nearly full', async () => {
    const { read, asked } = await prometheus(() => vector([]));
    expect(await read('nearly full')).toMatchObject({ claims: [], requests: 1 });
    expect(asked).toHaveLength(1);
  });
});

describe('several clusters', () => {
  it('are told apart by the label cluster', async () => {
    const { read, asked } = await prometheus(() => matrix([]), true);
    await read([data], 'prod-eu"} or {x="');
    expect(asked[0]?.parameters.get('query')).toContain(String.raw`cluster="prod-eu\"} or {x=\""`);
  });

  it('are never mixed where the bot knows one alone', async () => {
    const inBoth = ['a', 'b'].flatMap((cluster) =>
      levelsOf({ ...labels, cluster }, NOW, { free: cluster === 'a' ? 0.01 : 0.5 }),
    );
    const { read } = await prometheus(() => matrix(inBoth));
    await expect(read([data], 'prod')).rejects.toThrow(/several clusters \(label cluster: a and b\), and none is prod/);
    const { claims } = await read([data], 'b');
    expect(claims.map(({ bytes }) => bytes?.free)).toEqual([0.5]);
  });
});

describe('a name', () => {
  it.each([
    ['with dots', 'a.b', String.raw`"a\\.b|c"`],
    ['with everything', String.raw`a|b"c\d{e}`, String.raw`"a\\|b\"c\\\\d\\{e\\}|c"`],
  ])('%s stays one name', (_, name, wanted) => {
    const query = levels(undefined, [
      { namespace: 'x', name },
      { namespace: 'x', name: 'c' },
    ]);
    expect(query).toContain(`persistentvolumeclaim=~${wanted}`);
    expect(query).toContain('namespace="x"');
  });

  it('cannot end its string', () => {
    expect(quote('a"\n\\')).toBe(String.raw`"a\"\n\\"`);
  });
});

describe('credentials', () => {
  it.each([
    ['http://prometheus:9090/', 'http://prometheus:9090', undefined],
    ['https://bot:s%40cret@p.example.com/base/?x=1', 'https://p.example.com/base', `Basic ${btoa('bot:s@cret')}`],
    ['https://a-token@p.example.com', 'https://p.example.com', 'Bearer a-token'],
  ])('of %s', (setting, url, authorization) => {
    expect(endpointOf(setting)).toEqual({ url, authorization });
  });

  it('are sent, and stand in no error', async () => {
    const server = await prometheus(({ headers }, response) => {
      expect(headers.authorization).toBe(`Basic ${btoa('bot:s3cret')}`);
      response.writeHead(401).end('no');
    });
    const url = server.url.replace('//', '//bot:s3cret@');
    const failure = await server
      .source(url)
      .read({ cluster: 'prod', claims: [data], now: NOW }, signal)
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Refused);
    expect(String(failure)).toMatch(/does not accept the credentials \(HTTP 401\)/);
    expect(String(failure)).not.toContain('s3cret');
  });
});

describe('what goes wrong is told with its reason', () => {
  it.each<[string, (asked: AskedOf, response: ServerResponse) => unknown, RegExp, typeof Refused | typeof Transient]>([
    [
      'a query that it refuses',
      (_, r) =>
        void r.writeHead(400).end(JSON.stringify({ status: 'error', errorType: 'bad_data', error: 'parse error' })),
      /refuses the query \(bad_data: parse error\)/,
      Refused,
    ],
    ['a page of something else', (_, r) => void r.writeHead(200).end('<html>'), /no Prometheus \(HTTP 200\)/, Refused],
    [
      'a proxy that is down',
      (_, r) => void r.writeHead(502).end('bad gateway'),
      /no Prometheus \(HTTP 502\)/,
      Transient,
    ],
    [
      'an answer of another form',
      () => ({ status: 'success', data: { resultType: 'scalar', result: [0, '1'] } }),
      /no Prometheus/,
      Refused,
    ],
    [
      'a redirect',
      (_, r) => void r.writeHead(302, { location: 'http://127.0.0.1:1/' }).end(),
      /does not answer/,
      Transient,
    ],
    ['a connection that ends', (_, r) => void r.destroy(), /does not answer/, Transient],
    [
      'an answer without end',
      (_, r) => {
        r.writeHead(200);
        const chunk = Buffer.alloc(1024 * 1024, 32);
        const more = () => {
          while (!r.destroyed && r.write(chunk)) {}
          if (!r.destroyed) r.once('drain', more);
        };
        more();
        return undefined;
      },
      /too large/,
      Refused,
    ],
  ])('%s', async (_, answer, says, kind) => {
    const { read } = await prometheus(answer);
    const failure = await read().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(kind);
    expect(String(failure)).toMatch(says);
  });

  it('nobody there', async () => {
    const server = await prometheus(() => matrix([]));
    await server.close();
    const failure = await server.read().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Transient);
    expect(String(failure)).toMatch(/does not answer \(ECONNREFUSED\)/);
  });
});
