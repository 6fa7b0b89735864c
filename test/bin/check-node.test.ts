import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { whyTooOld } from '../../bin/check-node.mjs';

const run = promisify(execFile);

describe('the Node at hand', () => {
  it.each(['22.19.0', '22.20.1', '24.0.0', '26.1.0'])('%s serves', (version) => {
    expect(whyTooOld(version)).toBeUndefined();
  });

  it.each(['18.0.0', '20.20.2', '22.18.9'])('%s is refused in one line that says what to do', (version) => {
    expect(whyTooOld(version)).toMatch(/^[^\n]*22\.19[^\n]*Install[^\n]*$/);
  });
});

describe('installing elsewhere', () => {
  // The packages that bring a binary for Linux x64 are optional, so the install must resolve without them.
  it.each([
    ['darwin', 'arm64'],
    ['win32', 'x64'],
    ['linux', 'arm64'],
  ])('resolves on %s %s', async (os, cpu) => {
    const { stdout } = await run('npm', ['ci', '--dry-run', '--os', os, '--cpu', cpu, '--no-progress'], {
      timeout: 60_000,
    });
    expect(stdout).toMatch(/added \d+|up to date/);
  });
});
