/**
 * A Slack with as many people as wanted, and their signed requests: for load, where the playground's five are too few.
 * It keeps nothing; what the bot says is answered and forgotten.
 */
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sign } from '../../src/playground/slack/delivery.ts';

const TEAM = 'T0CROWD0001';
const SIGNING_SECRET = 'a-secret-of-the-crowd-only';

/** What somebody is: `guest`, `bot` and `gone` may not decide anything. */
export type Sort = 'member' | 'guest' | 'bot' | 'gone';

export interface Answered {
  readonly status: number;
  readonly body: string;
  /** From the first byte sent to the last one received. */
  readonly milliseconds: number;
}

export interface Crowd {
  /** Settings of a bot that is to talk to this Slack. */
  readonly environment: Readonly<Record<string, string>>;
  /** `/k8s-storage …` by that person; `address` is the bot's. */
  command(address: string, user: string, text: string): Promise<Answered>;
  /** The filled in form for a plan. */
  submit(address: string, user: string, plan: string, values: Readonly<Record<string, string>>): Promise<Answered>;
  close(): Promise<void>;
}

export async function startCrowd(sortOf: (user: string) => Sort): Promise<Crowd> {
  let serial = 0;
  const answer = (method: string, user: string): object => {
    serial += 1;
    const sort = sortOf(user);
    switch (method) {
      case 'auth.test':
        return { team_id: TEAM, user_id: 'U0CROWDBOT1', url: 'https://crowd.slack.test/' };
      case 'users.info':
        return {
          user: {
            id: user,
            team_id: TEAM,
            name: user.toLowerCase(),
            deleted: sort === 'gone',
            is_bot: sort === 'bot',
            is_restricted: sort === 'guest',
            is_ultra_restricted: false,
          },
        };
      case 'chat.postMessage':
        return { channel: 'C0CROWD', ts: `1796000000.${String(serial).padStart(6, '0')}` };
      default:
        return {};
    }
  };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const fields = new URLSearchParams(Buffer.concat(chunks).toString('utf8'));
      const method = (incoming.url ?? '').split('/').at(-1) ?? '';
      outgoing.writeHead(200, { 'content-type': 'application/json' });
      outgoing.end(JSON.stringify({ ok: true, ...answer(method, fields.get('user') ?? '') }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // A connection each: one that is kept may be closed by the other side at the moment it is used again.
  const agent = new Agent({ keepAlive: false, maxSockets: 2000 });
  const unique = () => {
    serial += 1;
    return `${serial}.${Date.now()}`;
  };
  return {
    environment: {
      SLACK_BOT_TOKEN: 'xoxb-of-the-crowd',
      SLACK_SIGNING_SECRET: SIGNING_SECRET,
      SLACK_API_URL: `http://127.0.0.1:${port}/api/`,
    },
    command: (address, user, text) =>
      post(
        address,
        { command: '/k8s-storage', text, team_id: TEAM, channel_id: 'C0CROWD', user_id: user, trigger_id: unique() },
        agent,
      ),
    submit(address, user, plan, values) {
      const state = Object.fromEntries(Object.entries(values).map(([block, value]) => [block, { value: { value } }]));
      const payload = {
        type: 'view_submission',
        team: { id: TEAM },
        user: { id: user, team_id: TEAM },
        view: {
          id: `V${unique()}`,
          type: 'modal',
          callback_id: 'approve',
          private_metadata: JSON.stringify({ plan }),
          hash: unique(),
          state: { values: state },
        },
      };
      return post(address, { payload: JSON.stringify(payload) }, agent);
    },
    close: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function post(address: string, fields: Readonly<Record<string, string>>, agent: Agent): Promise<Answered> {
  const body = new URLSearchParams(fields).toString();
  const timestamp = Math.floor(Date.now() / 1000);
  const began = performance.now();
  return new Promise((resolve, reject) => {
    const outgoing = request(
      `${address}/slack/events`,
      {
        method: 'POST',
        agent,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'content-length': Buffer.byteLength(body),
          'x-slack-request-timestamp': String(timestamp),
          'x-slack-signature': sign(SIGNING_SECRET, timestamp, body),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('error', reject);
        incoming.on('end', () =>
          resolve({
            status: incoming.statusCode ?? 0,
            body: Buffer.concat(chunks).toString('utf8'),
            milliseconds: performance.now() - began,
          }),
        );
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

/** The value below which that share of them lies. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
