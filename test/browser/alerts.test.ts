import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Visit, visitPlayground } from './visit.ts';

/**
 * The article's alerts as a newcomer to the playground fires them: a thread that is diagnosed already, its repair by two
 * people, and the end of the alerts as their objects recover, in headless Chromium.
 */
const RECOVERY_MS = 150_000;

let visit: Visit;
let page: Page;

/** The first message of the thread. */
function head(): Locator {
  return visit.thread().getByRole('article').first();
}

const repair = /Repair: Taint n1 out of service/;

describe('the alerts of the article', () => {
  beforeAll(async () => {
    visit = await visitPlayground();
    page = visit.page;
  });
  afterAll(() => visit?.close());

  it('become one thread, diagnosed, that names every alert and nobody as requester', async () => {
    await page.getByRole('button', { name: 'Fire alerts' }).click();
    await page.getByRole('button', { name: /\d+ replies/ }).click();
    await head()
      .getByText(/Node n1 has been down/)
      .first()
      .waitFor();
    await head()
      .getByText(/KubePodNotReady[\s\S]*KubeStatefulSetReplicasMismatch|KubeNodeNotReady[\s\S]*KubePodNotReady/)
      .first()
      .waitFor();
    expect(await head().innerText()).not.toMatch(/asked by/);
    expect(await page.getByRole('button', { name: /\d+ replies/ }).count()).toBe(1);
  });

  it('are answered by a repair that two people approve, and that is done and verified', async () => {
    await visit.act('Dana');
    await visit.approveWithProof(visit.message(repair));
    await visit
      .message(/1 of 2 approvals/)
      .first()
      .waitFor();
    await visit.act('Sam');
    await visit.approveWithProof(visit.message(repair));
    await visit
      .message(/“Taint n1 out of service” is done and verified/)
      .first()
      .waitFor();
  });

  it('end by themselves as their objects recover', async () => {
    await expect.poll(async () => head().innerText(), { timeout: RECOVERY_MS }).toMatch(/KubePodNotReady[^;·]*, over/);
  });
});
