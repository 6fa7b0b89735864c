import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Transient } from '../../src/domain/errors.ts';
import { ExecPlugin } from '../../src/kube/exec-plugin.ts';

/** A plugin that is a shell script; `$RUNS` collects one line per run. */
function plugin(body: string, now = () => 0) {
  const folder = mkdtempSync(join(tmpdir(), 'plugin-'));
  const command = join(folder, 'plugin');
  const runs = join(folder, 'runs');
  writeFileSync(command, `#!/bin/sh\n/bin/echo run >> ${runs}\n${body}\n`);
  chmodSync(command, 0o700);
  const spec = { apiVersion: 'client.authentication.k8s.io/v1', command, args: [], env: { GIVEN: 'yes' } };
  const count = () => (existsSync(runs) ? readFileSync(runs, 'utf8').trim().split('\n').length : 0);
  return { plugin: new ExecPlugin(spec, now), count };
}

const answer = (status: object) =>
  `/bin/echo '${JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status })}'`;

describe('credential plugins', () => {
  it('ten who ask at once make it run once', async () => {
    const { plugin: one, count } = plugin(answer({ token: 't1' }));
    const all = await Promise.all(Array.from({ length: 10 }, () => one.credential()));
    expect(new Set(all.map(({ token }) => token))).toEqual(new Set(['t1']));
    expect(count()).toBe(1);
  });

  it('it sees nothing of our environment but what the kubeconfig gives it', async () => {
    const { plugin: one } = plugin(
      `/bin/echo "{\\"kind\\":\\"ExecCredential\\",\\"status\\":{\\"token\\":\\"$(/usr/bin/env | /usr/bin/cut -d= -f1 | /usr/bin/sort | /usr/bin/tr '\\n' ' ')\\"}}"`,
    );
    const { token } = await one.credential();
    const names = (token ?? '')
      .trim()
      .split(' ')
      .filter((name) => !['PWD', '_', 'SHLVL', 'OLDPWD'].includes(name));
    expect(names).toEqual(['GIVEN', 'KUBERNETES_EXEC_INFO']);
  });

  it('it runs again half a minute before its answer expires, and after a refusal', async () => {
    let now = Date.parse('2026-11-30T12:00:00Z');
    const { plugin: one, count } = plugin(
      answer({ token: 't', expirationTimestamp: '2026-11-30T12:01:00Z' }),
      () => now,
    );
    await one.credential();
    now += 29_000;
    await one.credential();
    expect(count()).toBe(1);
    now += 2_000;
    await one.credential();
    expect(count()).toBe(2);
    now -= 31_000;
    one.forget();
    await one.credential();
    expect(count()).toBe(3);
  });

  it.each([
    ['fails', 'exit 3', /ended with code 3/],
    ['does not answer in JSON', '/bin/echo hunter2', /did not answer in JSON/],
    ['answers with something else', '/bin/echo \'{"token":"hunter2"}\'', /ExecCredential/],
  ])('one that %s is told without its output', async (_what, body, message) => {
    const { plugin: one } = plugin(body);
    const error: unknown = await one.credential().catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Transient);
    expect(String(error)).toMatch(message);
    expect(String(error)).not.toContain('hunter2');
  });

  it('one that is not there is told', async () => {
    const missing = new ExecPlugin({ apiVersion: 'v1', command: '/nowhere/plugin', args: [], env: {} }, () => 0);
    await expect(missing.credential()).rejects.toThrow(/could not be run/);
  });
});
