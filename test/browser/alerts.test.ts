import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BotProcess, startBot } from '../support/processes.ts';

/**
 * The article's alerts as a newcomer to the playground fires them: a thread that is diagnosed already, its repair by two
 * people, and the end of the alerts as their objects recover, in headless Chromium.
 */
const flags = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-sync'];
const PATIENCE_MS = 60_000;
const RECOVERY_MS = 150_000;

let dataDir: string;
let bot: BotProcess;
let browser: Browser;
let page: Page;

/** A playground of its own: the next one knows nothing of the incidents before it. */
async function open(): Promise<void> {
  dataDir = await mkdtemp(join(tmpdir(), 'playground-alerts-'));
  bot = await startBot({ DATA_DIR: dataDir, SETTLE: '2s' });
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
  page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(bot.address);
}

async function close(): Promise<void> {
  await browser?.close();
  await bot?.stop();
  await rm(dataDir, { recursive: true, force: true });
}

function thread(): Locator {
  return page.getByRole('complementary', { name: 'Thread' });
}

function head(): Locator {
  return thread().getByRole('article').first();
}

function message(text: RegExp): Locator {
  return thread().getByRole('article').filter({ hasText: text });
}

async function act(person: string): Promise<void> {
  const choice = page.getByRole('combobox', { name: 'Acting as' });
  const label = await choice.getByRole('option', { name: new RegExp(`^${person}`) }).textContent();
  await choice.selectOption({ label: label ?? person });
}

async function approveWithProof(): Promise<void> {
  await message(/Repair: Taint n1 out of service/)
    .getByRole('button', { name: /Approve/ })
    .first()
    .click();
  const form = page.getByRole('dialog');
  await form
    .getByRole('textbox', { name: /machine is off/ })
    .fill('The cloud console says instance i-n1 is terminated since 08:12.');
  await form.getByRole('textbox', { name: /why|reason/i }).fill('The shop is down and n1 will not come back.');
  await form.getByRole('button', { name: /^Approve$/ }).click();
  await form.waitFor({ state: 'hidden' });
}

describe('the alerts of the article', () => {
  beforeAll(open);
  afterAll(close);

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
    await act('Dana');
    await approveWithProof();
    await message(/1 of 2 approvals/)
      .first()
      .waitFor();
    await act('Sam');
    await approveWithProof();
    await message(/“Taint n1 out of service” is done and verified/)
      .first()
      .waitFor();
  });

  it('end by themselves as their objects recover', async () => {
    await expect.poll(async () => head().innerText(), { timeout: RECOVERY_MS }).toMatch(/KubePodNotReady[^;·]*, over/);
  });
});
