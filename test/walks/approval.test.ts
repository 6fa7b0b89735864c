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
  });

  it('takes clicks in its old thread after a restart', async () => {
    const finding = await house.saw(/Repair|No longer found/);
    expect(await house.click('lin', finding, 'recheck')).toEqual({ ok: true });
    await until(() => (house.slack.messages('C0INCIDENTS').length > 0 ? true : undefined), 'messages');
  });
});
