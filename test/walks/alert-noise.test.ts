import { beforeAll, describe, expect, it } from 'vitest';
import { ALERT_TOKEN, group, send, written } from '../support/alerts.ts';
import { channel, type House, startHouse, until, wordsOf } from '../support/house.ts';

/** What people see, and do not see, of alerts: mutes, quiet, a Slack that is away, and a flapping alert. */
let house: House;

beforeAll(async () => {
  house = await startHouse('incident', { SLACK_INCIDENT_CHANNEL: channel, ALERT_TOKEN, SCAN_INTERVAL: '0' });
});

const pod = (name: string, minute: number, status: 'firing' | 'resolved' = 'firing') =>
  written({
    name: 'KubePodNotReady',
    labels: { namespace: 'shop', pod: name },
    startsAt: `2026-11-30T12:${String(minute).padStart(2, '0')}:00Z`,
    status,
  });
const heads = () => house.slack.messages(channel).filter((message) => !message.threadTs);
const says = () => heads().map(wordsOf).join('\n---\n');

describe('a muted object', () => {
  it('gets no thread, and gets it when the mute ends', async () => {
    await house.say('sam', '/k8s-storage mute node/n1 --for 2h');
    await house.saw(/Muted Node n1 for/, 'sam');
    await send(house.address, group([pod('db-0', 0)]));
    await house.say('sam', '/k8s-storage incidents');
    await until(async () => ((await metric('diagnose')) > 0 ? true : undefined), 'the diagnosis');
    expect(heads()).toEqual([]);
    await house.say('sam', '/k8s-storage unmute node/n1');
    await house.saw(/begin threads again/, 'sam');
    await house.saw(/Node n1 has been down/);
    expect(heads()).toHaveLength(1);
  }, 60_000);

  it.each([
    ['/k8s-storage mute', /Mute what/],
    ['/k8s-storage mute pvc/x -n shop --for ever', /For how long/],
    ['/k8s-storage unmute pvc/never -n shop', /was not muted/],
  ])('%s is answered with what to write', async (text, told) => {
    await house.say('lin', text);
    await house.saw(told, 'lin');
  });

  it('is not muted by a guest', async () => {
    await house.say('gus', '/k8s-storage mute node/n1');
    await house.saw(/Guests may not/, 'gus');
  });
});

describe('an alert that flaps', () => {
  it('makes one thread and at most a handful of messages', async () => {
    const before = house.slack.messages(channel).length;
    for (let minute = 1; minute < 30; minute += 1) {
      await send(house.address, group([pod('db-0', minute)]));
      await send(house.address, group([pod('db-0', minute, 'resolved')]));
    }
    await send(house.address, group([written({ name: 'LastOfAll', labels: { namespace: 'shop', pod: 'db-0' } })]));
    await until(() => (/LastOfAll/.test(says()) ? true : undefined), 'the last of them', says);
    expect(heads()).toHaveLength(1);
    expect(house.slack.messages(channel).length - before).toBeLessThanOrEqual(5);
  }, 60_000);
});

async function metric(kind: string): Promise<number> {
  const text = await (await fetch(`${house.address}/metrics`)).text();
  return Number(new RegExp(`k8s_storage_jobs_total\\{kind="${kind}",outcome="done"\\} (\\d+)`).exec(text)?.[1] ?? 0);
}
