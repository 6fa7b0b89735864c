import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Cluster } from '../../src/domain/cluster.ts';
import { openOneReader } from '../../src/kube/clusters.ts';
import { runCli } from '../support/processes.ts';
import { PATIENCE_MS, type Visit, visitPlayground } from './visit.ts';

/**
 * The playground as a newcomer meets it: the page, the incident it opens with, and its repair by three people, in
 * headless Chromium. Everything runs on loopback; the same process is `npm start`.
 */
let visit: Visit;
let page: Page;

beforeAll(async () => {
  visit = await visitPlayground();
  page = visit.page;
});

afterAll(() => visit?.close());

/** What the API server holds now, read as the command line would read it. */
async function cluster(): Promise<Cluster> {
  const settings = { kubeconfig: join(visit.dataDir, 'playground', 'kubeconfig'), home: undefined, allowedPlugins: [] };
  const reader = openOneReader(settings, undefined, { clock: { now: () => Date.now() }, onRaw: undefined });
  const needs = ['pods', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments', 'nodes'] as const;
  return (await reader.read({ scope: { kind: 'Cluster' }, needs }, AbortSignal.timeout(10_000))).cluster;
}

describe('the incident of the playground', () => {
  it('is diagnosed by one command, cause first, with the three orphaned volumes named', async () => {
    await page.getByRole('textbox', { name: 'Message #incidents' }).fill('/k8s-storage diagnose');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: /\d+ replies/ }).click();
    const head = visit.thread().getByRole('article').first();
    await head
      .getByText(/Node n1 has been down/)
      .first()
      .waitFor();
    const text = await head.innerText();
    const cause = text.indexOf('Node n1 has been down');
    for (const other of ['ci/ci-cache', 'vol-3f9c1a70', 'vol-77b0e2d4', 'vol-c85d4e19'])
      expect(text.indexOf(other), other).toBeGreaterThan(cause);
    await visit
      .message(/What follows from it/)
      .first()
      .waitFor();
    expect(
      await visit
        .message(/Node n1 has been down.*\n/)
        .nth(1)
        .innerText(),
    ).toMatch(/data-db-0[\s\S]*data-db-1/);
  });

  it('refuses the approval of the one who asked, before any form', async () => {
    await visit
      .message(/Repair: Taint n1 out of service/)
      .getByRole('button', { name: /Approve/ })
      .first()
      .click();
    await page
      .getByText(/two other people must approve/)
      .first()
      .waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  it('shows what a form lacks under its input', async () => {
    await visit.act('Sam');
    await visit
      .message(/Repair: Taint n1 out of service/)
      .getByRole('button', { name: /Approve/ })
      .first()
      .click();
    const form = page.getByRole('dialog');
    await form.getByRole('button', { name: /^Approve$/ }).click();
    await form.getByRole('alert').first().waitFor();
    await form
      .getByRole('button', { name: /Cancel|Close/ })
      .first()
      .click();
    await form.waitFor({ state: 'hidden' });
  });

  it('keeps the volumes of both deleted claims, on the word of one person each', async () => {
    for (const claim of ['data-db-0', 'data-db-1']) {
      const finding = visit.message(new RegExp(`Claim shop/${claim} was deleted.*\\n`)).last();
      await finding
        .getByRole('button', { name: /Approve/ })
        .first()
        .click();
    }
    await expect
      .poll(async () => retained(await cluster()), { timeout: PATIENCE_MS })
      .toEqual(['data-db-0', 'data-db-1']);
  });

  it('is repaired when two others have approved with proof', async () => {
    await visit.approveWithProof(visit.message(/Repair: Taint n1 out of service/));
    await visit
      .message(/1 of 2 approvals/)
      .first()
      .waitFor();
    await visit.act('Lin');
    await visit.approveWithProof(visit.message(/Repair: Taint n1 out of service/));
    await visit
      .message(/“Taint n1 out of service” is done and verified/)
      .first()
      .waitFor();
  });

  it('has recovered: three pods Ready, nothing attached to n1, no data deleted, both claims’ volumes kept', async () => {
    await expect
      .poll(async () => readyPods(await cluster()), { timeout: PATIENCE_MS })
      .toEqual(['db-0', 'db-1', 'db-2']);
    const now = await cluster();
    expect(now.attachmentsOnNode('n1')).toEqual([]);
    expect(retained(now)).toEqual(['data-db-0', 'data-db-1']);
    expect(now.objects.persistentvolumes.filter((volume) => volume.claimRef?.namespace === 'shop')).toHaveLength(3);
  });

  it('says which volumes hold the old data and how to bind them again', async () => {
    const text = await visit.thread().innerText();
    expect(text).toMatch(/claimRef/);
    expect(text).toMatch(/replicas[= ]*0/);
  });

  it('leaves an audit trail that verifies, with the votes’ proofs in it', async () => {
    const verified = await runCli(['audit', 'verify'], { DATA_DIR: visit.dataDir });
    expect(verified.output.trim().split('\n').at(-1)).toMatch(/^ok: \d+ events, head [0-9a-f]{64}$/);
    expect(verified.code).toBe(0);
    const exported = await runCli(['audit', 'export'], { DATA_DIR: visit.dataDir });
    expect(exported.output).toContain('instance i-n1 is terminated');
  });

  it('looks as the README shows it, and asks for nothing outside', async () => {
    const shot = process.env['SCREENSHOT'];
    if (shot) await page.screenshot({ path: shot });
    expect(visit.errors).toEqual([]);
  });
});

function retained(now: Cluster): readonly string[] {
  return now.objects.persistentvolumes
    .filter((volume) => volume.claimRef?.namespace === 'shop' && volume.reclaimPolicy === 'Retain')
    .map((volume) => volume.claimRef?.name ?? '')
    .toSorted();
}

function readyPods(now: Cluster): readonly string[] {
  return now.objects.pods
    .filter(
      (pod) =>
        pod.namespace === 'shop' &&
        pod.conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True'),
    )
    .map((pod) => pod.name)
    .toSorted();
}
