import { beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type House, startHouse, until } from '../support/house.ts';
import { runCli } from '../support/processes.ts';

/**
 * The first walk, end to end: a node is down, a Deployment's pod waits for its volume, somebody asks, two others approve
 * with proof, the node is tainted, the pod runs, and the trail tells it all.
 */
let house: House;

beforeAll(async () => {
  house = await startHouse('multi-attach');
});

const proof = {
  'proof/node-off-proof': 'The cloud console says instance i-n1 is terminated.',
  reason: 'The shop is down and n1 will not come back.',
};

describe('a node that is down', () => {
  it('is named as the cause in a thread, with its evidence and the repair', async () => {
    expect(await house.say('dana', '/k8s-storage diagnose deployment/web -n shop')).toEqual({ ok: true });
    const head = await house.saw(/Node n1 has been down[\s\S]*asked by/);
    expect(head.threadTs).toBeUndefined();
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    expect(finding.threadTs).toBe(head.ts);
  });

  it('cannot be tainted by the one who asked, nor by a guest, and neither gets a form', async () => {
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    await house.click('dana', finding, 'approve', 'taint-node-out-of-service');
    await house.saw(/two other people must approve/, 'dana');
    await house.click('gus', finding, 'approve', 'taint-node-out-of-service');
    await house.saw(/Guests may not decide/, 'gus');
    expect(house.cluster.journal).toEqual([]);
  });

  it('asks each approver for the proof in words', async () => {
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    await house.click('sam', finding, 'approve', 'taint-node-out-of-service');
    const wrong = await house.submit('sam', { 'proof/node-off-proof': 'yes', reason: 'hm' });
    expect(wrong.ok === false && wrong.errors?.['proof/node-off-proof']).toMatch(/how you know/);
    expect(await house.submit('sam', proof)).toEqual({ ok: true });
    await house.saw(/1 of 2 approvals/);
    expect(house.cluster.journal).toEqual([]);
  });

  it('is tainted once when the second has approved, and the pod gets its volume', async () => {
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    await house.click('lin', finding, 'approve', 'taint-node-out-of-service');
    expect(await house.submit('lin', proof)).toEqual({ ok: true });
    await house.saw(/“Taint n1 out of service” is done and verified/);
    const writes = house.cluster.journal;
    expect(writes.map(({ verb, resource, name }) => `${verb} ${resource} ${name}`)).toEqual(['patch nodes n1']);
  });

  it('needs nothing more once it is diagnosed again', async () => {
    const head = await house.saw(/asked by/);
    await house.say('sam', '<@U0K8STORAGE> recheck', head.ts);
    await house.saw(/No longer found: multi-attach-node-down/);
  });

  it('is told from the first moment to the last in one file, for whoever asks, once in each language', async () => {
    const head = await house.saw(/Resolved/);
    await house.click('gus', head, 'postmortem');
    await house.saw(/Guests may not/, 'gus');
    await Promise.all([house.click('sam', head, 'postmortem'), house.click('lin', head, 'postmortem')]);
    await house.saw(/Post-mortem of Deployment shop\/web, asked for by/);
    await house.click('sam', head, 'postmortem');
    await house.saw(/stands in the .*thread.* already|being written already/, 'sam');
    await house.click('mei', head, 'postmortem');
    await house.saw(/Deployment shop\/web 的事故复盘/);
    const shared = house.slack
      .messages('C0INCIDENTS')
      .flatMap(({ files, threadTs }) => files.map((file) => ({ file, threadTs })));
    expect(shared.map(({ threadTs }) => threadTs)).toEqual([head.ts, head.ts]);
    const [english, chinese] = await Promise.all(
      shared.map(async ({ file }) => (await fetch(`${house.slack.url}files/${file.id}`)).text()),
    );
    expect(english).toMatch(/^# Post-mortem `inc-/);
    expect(english).toContain('`node-off-proof`');
    expect(english).toMatch(/Approved by sam \(`U0SAM000001`\)[\s\S]*instance i-n1 is terminated/);
    expect(english).toMatch(/Write 1: `patch nodes n1`[^\n]*, done/);
    expect(english).toMatch(/\*\*The incident was resolved\*\*/);
    expect(english).toMatch(/in `(Europe\/London|Asia\/Singapore)`/);
    expect(chinese).toMatch(/^# 事故复盘 `inc-[\s\S]*`Asia\/Shanghai`/);
  });

  it('has left a trail that verifies, and that tells who proved what', async () => {
    await house.restart();
    const { code, output } = await runCli(['audit', 'verify'], { DATA_DIR: house.dataDir });
    expect(output.trim().split('\n').at(-1)).toMatch(/^ok: \d+ events, head [0-9a-f]{64}$/);
    expect(code).toBe(0);
    const exported = await runCli(['audit', 'export'], { DATA_DIR: house.dataDir });
    const told = exported.output
      .trim()
      .split('\n')
      .map((line) => z.object({ body: z.string() }).parse(JSON.parse(line)).body);
    for (const kind of ['incident_opened', 'plan_created', 'vote', 'claim', 'intent', 'outcome', 'incident_resolved']) {
      expect(
        told.filter((body) => body.includes(`"kind":"${kind}"`)),
        kind,
      ).not.toEqual([]);
    }
    expect(told.filter((body) => body.includes('instance i-n1 is terminated'))).toHaveLength(2);
    const id = /inc-[0-9a-z]+/.exec(exported.output)?.[0] ?? '';
    const written = await runCli(['postmortem', id, '--timezone', 'America/St_Johns'], { DATA_DIR: house.dataDir });
    expect(written.code).toBe(0);
    expect(written.output).toMatch(
      /All times are in `America\/St_Johns`[\s\S]*-0[23]:30` \*\*The incident was resolved/,
    );
    expect((await runCli(['postmortem', id, '--timezone', 'Mars'], { DATA_DIR: house.dataDir })).code).toBe(2);
    expect((await runCli(['postmortem', 'inc-none'], { DATA_DIR: house.dataDir })).code).toBe(2);
  });

  it('takes clicks in its old thread after a restart', async () => {
    const finding = await house.saw(/Repair|No longer found/);
    expect(await house.click('lin', finding, 'recheck')).toEqual({ ok: true });
    await until(() => (house.slack.messages('C0INCIDENTS').length > 0 ? true : undefined), 'messages');
  });
});
