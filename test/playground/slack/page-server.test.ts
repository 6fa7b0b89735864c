import { request } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterObject } from '../../../src/playground/slack/cluster-rows.ts';
import { stringAt } from '../../../src/playground/slack/json.ts';
import type { PlaygroundSlack } from '../../../src/playground/slack/server.ts';
import { call, ids, startSlack } from './fake-bot.ts';

let slack: PlaygroundSlack;
let current = 'incident';
let tellCluster: () => void = () => undefined;
let objects: readonly ClusterObject[] = [];

beforeAll(async () => {
  slack = await startSlack({
    cluster: {
      snapshot: async () => objects,
      subscribe(listener) {
        tellCluster = listener;
        return () => undefined;
      },
    },
    scenarios: {
      list: () => ['incident', 'class'].map((id) => ({ id, title: id, story: '' })),
      current: () => current,
      load: async (id) => {
        current = id;
      },
    },
  });
});
afterAll(() => slack.close());

/** A raw request, because fetch does not let a test choose `Host`. */
function send(path: string, headers: Record<string, string>, body?: string): Promise<number> {
  const url = new URL(path, slack.url);
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: body === undefined ? 'GET' : 'POST', headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject).end(body);
  });
}

describe('the page', () => {
  it('loads nothing from elsewhere and may not be framed', async () => {
    const response = await fetch(slack.url);
    const policy = response.headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    const html = await response.text();
    expect([...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]?.split(/[:?]/)[0])).toEqual([
      'data',
      '/page.css',
      '/page.js',
    ]);
    const css = await (await fetch(`${slack.url}page.css`)).text();
    expect(css).not.toMatch(/url\(["']?(?:https?:)?\/\//);
    expect((await fetch(`${slack.url}page.js`)).status).toBe(200);
    expect((await fetch(`${slack.url}archives/${ids.incidents}/p1`)).headers.get('content-type')).toContain(
      'text/html',
    );
  });

  const json = { 'content-type': 'application/json' };
  const host = () => new URL(slack.url).host;
  it.each([
    [
      'the page itself',
      () => ({ ...json, host: host(), origin: `http://${host()}`, 'sec-fetch-site': 'same-origin' }),
      200,
    ],
    ['a program without a browser', () => ({ ...json, host: host() }), 200],
    ['another site', () => ({ ...json, host: host(), origin: 'https://evil.example' }), 403],
    ['another site by fetch metadata', () => ({ ...json, host: host(), 'sec-fetch-site': 'cross-site' }), 403],
    ['a sandboxed frame', () => ({ ...json, host: host(), origin: 'null' }), 403],
    [
      'a name that was rebound to this machine',
      () => ({ ...json, host: 'evil.example', origin: 'http://evil.example' }),
      403,
    ],
    ['a form, which needs no permission to cross origins', () => ({ 'content-type': 'text/plain', host: host() }), 404],
  ])('acts for %s or not', async (_, headers, status) => {
    const before = slack.messages(ids.incidents).length;
    const body = JSON.stringify({ user: ids.dana, channel: ids.incidents, text: 'hello' });
    expect(await send('/client/say', headers(), body)).toBe(status);
    expect(slack.messages(ids.incidents).length - before).toBe(status === 200 ? 1 : 0);
  });

  it.each([
    ['an act that does not exist', '/client/nothing', '{}', 404],
    ['a person who does not exist', '/client/home', '{"user":"U0NOBODY","tab":"home"}', 404],
    ['a body that is no JSON', '/client/say', 'oops', 400],
    ['a body that lacks something', '/client/click', '{}', 400],
    ['a body over 2 MB', '/client/say', 'x'.repeat(2_000_001), 413],
  ])('refuses %s', async (_, path, body, status) => {
    expect(await send(path, { ...json, host: host() }, body)).toBe(status);
  });
});

describe('the stream of events', () => {
  /** Reads events until `enough` says so. */
  async function listen(
    user: string,
    enough: (events: readonly [string, unknown][]) => boolean,
    during: () => Promise<unknown>,
  ) {
    const leave = new AbortController();
    const response = await fetch(`${slack.url}client/events?user=${user}`, { signal: leave.signal });
    const events: [string, unknown][] = [];
    let rest = '';
    let isTold = false;
    for await (const chunk of response.body ?? []) {
      rest += Buffer.from(chunk).toString('utf8');
      const parts = rest.split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts) {
        const [name = '', data = ''] = part.split('\n');
        events.push([name.slice('event: '.length), JSON.parse(data.slice('data: '.length))]);
      }
      if (!isTold) {
        isTold = true;
        await during();
      }
      if (enough(events)) break;
    }
    leave.abort();
    return events;
  }

  it('begins with the whole screen, then tells of messages that this person may see', async () => {
    const events = await listen(
      ids.gus,
      (all) => all.some(([kind, data]) => kind === 'message' && JSON.stringify(data).includes('the end')),
      async () => {
        await call(slack, 'chat.postMessage', { channel: ids.storage, text: 'not for guests' });
        await call(slack, 'chat.postEphemeral', { channel: ids.incidents, user: ids.sam, text: 'for Sam alone' });
        await call(slack, 'chat.postEphemeral', { channel: ids.incidents, user: ids.gus, text: 'for Gus alone' });
        await call(slack, 'chat.postMessage', { channel: ids.incidents, text: 'the end' });
      },
    );
    expect(events[0]?.[0]).toBe('screen');
    const told = events.slice(1).map(([, data]) => stringAt(data, 'text'));
    expect(told).toEqual(['for Gus alone', 'the end']);
  });

  it('shows the cluster as it changes', async () => {
    const events = await listen(
      ids.dana,
      (all) => all.some(([kind]) => kind === 'cluster'),
      async () => {
        objects = [
          {
            apiVersion: 'v1',
            kind: 'Node',
            metadata: { name: 'n1' },
            status: { conditions: [{ type: 'Ready', status: 'Unknown' }] },
          },
        ];
        tellCluster();
      },
    );
    expect(events.at(-1)).toMatchObject([
      'cluster',
      [{ kind: 'Node', name: 'n1', chips: [{ text: 'NotReady', tone: 'bad' }] }],
    ]);
  });

  it('tells everybody of another scenario, and refuses one that does not exist', async () => {
    const load = (id: string) =>
      fetch(`${slack.url}client/scenario`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id }),
      });
    const events = await listen(
      ids.dana,
      (all) => all.some(([kind]) => kind === 'scenario'),
      () => load('class'),
    );
    expect(events.at(-1)).toEqual(['scenario', 'class']);
    expect(await (await load('nothing')).json()).toMatchObject({ ok: false });
  });
});
