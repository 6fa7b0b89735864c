/**
 * A storm of alerts: many webhooks about many separate troubles, with repeats and with ends that come before their
 * beginnings. It sends as Alertmanager does: what was not answered 202 is sent again.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SimulatedCluster } from '../../src/playground/cluster/start.ts';
import type { Message } from '../../src/playground/slack/messages.ts';
import { ALERT_TOKEN, group, send, written } from '../support/alerts.ts';

export const NAMESPACE = 'storm';

/** Claims that name classes which do not exist, each with its pod: separate troubles, which nothing repairs by itself. */
export function seedTroubles(cluster: SimulatedCluster, count: number, now: number): void {
  const created = new Date(now - 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');
  const meta = (name: string) => ({ name, namespace: NAMESPACE, creationTimestamp: created });
  cluster.store.create('namespaces', { metadata: { name: NAMESPACE, creationTimestamp: created } }, { seed: true });
  for (let no = 0; no < count; no += 1) {
    cluster.store.create(
      'persistentvolumeclaims',
      {
        metadata: meta(`claim-${no}`),
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: `${wordOf(no)}-class-that-is-not`,
          volumeMode: 'Filesystem',
          resources: { requests: { storage: '1Gi' } },
        },
        status: { phase: 'Pending' },
      },
      { seed: true },
    );
    cluster.store.create(
      'pods',
      {
        metadata: meta(`pod-${no}`),
        spec: {
          containers: [{ name: 'app', image: 'app' }],
          volumes: [{ name: 'data', persistentVolumeClaim: { claimName: `claim-${no}` } }],
        },
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime: created }],
        },
      },
      { seed: true },
    );
  }
}

/** Names that are far from each other, so that no class looks like a slip of another one. */
function wordOf(no: number): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  return Array.from(
    { length: 8 },
    (_, place) => letters[(no * (place + 3) * 7 + place * 11 + (no >> place)) % 26],
  ).join('');
}

export interface Storm {
  readonly webhooks: number;
  readonly groups: number;
  /** Over which time they are spread; 0 is all at once. */
  readonly overMs: number;
  /** Where the sender's next attempt goes: a process may have been started anew. */
  readonly address: () => string;
}

export interface Weathered {
  /** Milliseconds until the answer, of every answer that came. */
  readonly times: readonly number[];
  readonly statuses: ReadonlyMap<number, number>;
  /** (name, start) of each alert that was answered 202, with what was told last. */
  readonly accepted: readonly {
    readonly name: string;
    readonly pod: string;
    readonly startsAt: string;
    readonly isOver: boolean;
  }[];
}

const ALERTS = 10;
const BEGAN = Date.parse('2026-11-30T00:00:00Z');
const AGAIN_MS = 250;

interface Sent {
  readonly body: string;
  readonly alerts: readonly ReturnType<typeof alertOf>[];
}

function alertOf(groupNo: number, round: number, no: number, isOver: boolean) {
  return {
    name: `StormAlert${no}`,
    labels: { namespace: NAMESPACE, pod: `pod-${groupNo}` },
    startsAt: new Date(BEGAN + round * 1000).toISOString(),
    status: isOver ? ('resolved' as const) : ('firing' as const),
  };
}

/** 30 % repeats of what was sent before, 10 % ends that come before their beginnings. */
function* sentBy({ webhooks, groups }: Storm): Generator<Sent> {
  const before: Sent[] = [];
  let fresh = 0;
  for (let no = 0; no < webhooks; no += 1) {
    const repeat = no % 10 < 3 ? before[(no * 7919) % Math.max(1, before.length)] : undefined;
    if (repeat) {
      yield repeat;
      continue;
    }
    const groupNo = fresh % groups;
    const round = Math.floor(fresh / groups);
    fresh += 1;
    const isEarlyEnd = no % 10 === 9;
    const alerts = Array.from({ length: ALERTS }, (_, i) => alertOf(groupNo, round, i, isEarlyEnd && i > 0));
    const sent = { body: JSON.stringify(group(alerts.map(written))), alerts };
    before.push(sent);
    yield sent;
    if (isEarlyEnd) {
      const late = alerts.map((alert) => ({ ...alert, status: 'firing' as const }));
      before.push({ body: JSON.stringify(group(late.map(written))), alerts: late });
    }
  }
}

export async function weather(storm: Storm): Promise<Weathered> {
  const times: number[] = [];
  const statuses = new Map<number, number>();
  const accepted = new Map<string, Weathered['accepted'][number]>();
  const began = performance.now();
  const underWay: Promise<void>[] = [];
  const deliver = async ({ body, alerts }: Sent) => {
    for (;;) {
      const sent = performance.now();
      const answer = await send(storm.address(), body, { token: ALERT_TOKEN }).catch(() => undefined);
      if (answer) {
        times.push(performance.now() - sent);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      }
      if (answer?.status === 202) break;
      await sleep(AGAIN_MS);
    }
    for (const { name, labels, startsAt, status } of alerts) {
      const key = `${name}/${labels.pod}/${startsAt}`;
      const isOver = status === 'resolved' || accepted.get(key)?.isOver === true;
      accepted.set(key, { name, pod: labels.pod, startsAt, isOver });
    }
  };
  let no = 0;
  for (const sent of sentBy(storm)) {
    const early = began + (no * storm.overMs) / storm.webhooks - performance.now();
    if (early > 1) await sleep(early);
    underWay.push(deliver(sent));
    no += 1;
  }
  await Promise.all(underWay);
  return { times, statuses, accepted: [...accepted.values()] };
}

/** The most messages that were posted within any second. */
export function mostPerSecond(messages: readonly Message[]): number {
  const at = messages.map(({ ts }) => Number(ts)).toSorted((a, b) => a - b);
  return at.reduce((most, from, i) => Math.max(most, at.slice(i).filter((time) => time < from + 1).length), 0);
}
