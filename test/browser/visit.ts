import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { chromium, type Locator, type Page } from 'playwright-core';
import { startBot } from '../support/processes.ts';

const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** How long the page may take to show what is waited for, in milliseconds. */
export const PATIENCE_MS = 60_000;

/** A newcomer before the playground's page, in headless Chromium; the process is that of `npm start`. */
export interface Visit {
  readonly page: Page;
  readonly dataDir: string;
  /** Errors of the page, and what it asked for elsewhere. */
  readonly errors: readonly string[];
  thread(): Locator;
  /** The messages of the thread that say this. */
  message(text: RegExp): Locator;
  /** Goes on as this person. */
  act(person: string): Promise<void>;
  /** Votes by the form that the Approve button of a message opens. */
  approveWithProof(message: Locator): Promise<void>;
  /** Ends the browser and the bot, and removes its data. */
  close(): Promise<void>;
}

/** Opens a playground of its own: it knows nothing of the incidents of another one. */
export async function visitPlayground(): Promise<Visit> {
  const dataDir = await mkdtemp(join(tmpdir(), 'playground-'));
  const bot = await startBot({ DATA_DIR: dataDir, SETTLE: '2s' });
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: flags });
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const errors: string[] = [];
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('request', (request) => {
    if (!request.url().startsWith(bot.address) && !request.url().startsWith('data:'))
      errors.push(`asked for ${request.url()}`);
  });
  await page.goto(bot.address);
  const thread = () => page.getByRole('complementary', { name: 'Thread' });
  return {
    page,
    dataDir,
    errors,
    thread,
    message: (text) => thread().getByRole('article').filter({ hasText: text }),
    async act(person) {
      const choice = page.getByRole('combobox', { name: 'Acting as' });
      const label = await choice.getByRole('option', { name: new RegExp(`^${person}`) }).textContent();
      await choice.selectOption({ label: label ?? person });
    },
    async approveWithProof(message) {
      await message
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
    },
    async close() {
      await browser.close();
      await bot.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
