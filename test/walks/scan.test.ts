import { beforeAll, describe, expect, it } from 'vitest';
import { channel, type House, startHouse, until, wordsOf } from '../support/house.ts';

/** What the bot sees by itself, without any alert: node n1 is down, and more. */
let house: House;

beforeAll(async () => {
  house = await startHouse('incident', { SLACK_INCIDENT_CHANNEL: channel, SCAN_INTERVAL: '10s' });
});

const heads = () => house.slack.messages(channel).filter((message) => !message.threadTs);

/** How many looks this process has had. */
async function looks(): Promise<number> {
  const metrics = await (await fetch(`${house.address}/metrics`)).text();
  return Number(/k8s_storage_jobs_total\{kind="scan",outcome="done"\} (\d+)/.exec(metrics)?.[1] ?? 0);
}

/** Waits until one that begins from now on has ended. */
async function nextLook(): Promise<void> {
  const before = await looks();
  await until(async () => ((await looks()) > before ? true : undefined), 'another look at the cluster');
}

describe('the bot’s own look at a cluster', () => {
  it('opens one thread for each critical cause, and says how it was found', async () => {
    const head = await house.saw(/Node n1 has been down[\s\S]*own look/);
    expect(wordsOf(head)).toMatch(/approve or reject/);
    const causes = heads().map(({ text }) => text.split('\n')[0]);
    expect(new Set(causes).size).toBe(causes.length);
  });

  it('posts nothing twice, after another look and after a restart', async () => {
    await nextLook();
    const before = heads().map(({ ts }) => ts);
    await house.restart();
    await nextLook();
    await nextLook();
    expect(heads().map(({ ts }) => ts)).toEqual(before);
  }, 60_000);

  it('resolves what is well again, in the thread’s first message', async () => {
    house.cluster.loadScenario('multi-attach');
    await until(
      () => (heads().some(({ text }) => /^Resolved/.test(text)) ? true : undefined),
      'a resolved thread',
      () => heads().map(wordsOf).join('\n---\n'),
    );
  }, 60_000);
});
