import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { commands } from '../../handlers/commands/index.ts';
import { runWords, wordsOf } from '../../handlers/words.ts';
import type { Request } from '../../src/domain/inbox.ts';
import { textIn } from '../../src/domain/text.ts';
import type { Actor } from '../../src/surface.ts';
import { type FakeSurface, fakeSurface } from '../slack/support/fake-surface.ts';

const actor: Actor = { user: 'U1', channel: 'C1', thread: null, key: 'cmd:T1:1' };
let surface: FakeSurface;

beforeEach(() => {
  surface = fakeSurface();
});

async function run(text: string): Promise<{ readonly says: string; readonly body: Request | undefined }> {
  const { text: says } = await runWords(text, actor, surface);
  return { says: textIn(says, 'en'), body: surface.rows[0]?.body };
}

function scopeOf(body: Request | undefined): unknown {
  return body?.kind === 'diagnose' ? body.scope : undefined;
}

describe('diagnose', () => {
  const claim = { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data-db-0' };
  const right: readonly (readonly [string, unknown])[] = [
    ['diagnose', { kind: 'Cluster' }],
    ['diagnose -n shop', { kind: 'Namespace', namespace: null, name: 'shop' }],
    ['diagnose ns/shop', { kind: 'Namespace', namespace: null, name: 'shop' }],
    ['diagnose pvc/data-db-0 -n shop', claim],
    ['diagnose -n shop pvc/data-db-0', claim],
    ['diagnose pvc/data-db-0 --namespace=shop', claim],
    ['diagnose pvc/shop/data-db-0', claim],
    ['diagnose pvc shop/data-db-0', claim],
    ['diagnose pvc data-db-0 -n shop', claim],
    ['Diagnose PVC/data-db-0 -n shop', claim],
    ['diagnose `pvc/data-db-0` -n shop', claim],
    ['diagnose “pvc/data-db-0” —namespace shop', claim],
    ['  diagnose   persistentvolumeclaims/data-db-0   -n   shop ', claim],
    ['diagnose node/ip-10-0-0-1.ec2.internal', { kind: 'Node', namespace: null, name: 'ip-10-0-0-1.ec2.internal' }],
    ['diagnose node/<http://n1.example.com|n1.example.com>', { kind: 'Node', namespace: null, name: 'n1.example.com' }],
    ['diagnose sts/db -n shop', { kind: 'StatefulSet', namespace: 'shop', name: 'db' }],
    ['diagnose va csi-abc', { kind: 'VolumeAttachment', namespace: null, name: 'csi-abc' }],
  ];
  it.each(right)('%s', async (text, scope) => {
    const { says, body } = await run(text);
    expect(body).toEqual({ kind: 'diagnose', user: 'U1', channel: 'C1', cluster: null, scope });
    expect(says).toMatch(/^Diagnosing/);
  });

  const wrong: readonly (readonly [string, RegExp])[] = [
    ['diagnose pvcs/data-db-0 -n shop', /do not know the kind `pvcs`\. Did you mean `pvc`\? Kinds are: pod, pvc/],
    ['diagnose secret/x -n shop', /do not know the kind `secret`\. Kinds are/],
    ['diagnose pvc', /Which PersistentVolumeClaim\? Write for example/],
    ['diagnose pvc/', /Which PersistentVolumeClaim\?/],
    ['diagnose pvc/data-db-0', /In which namespace is PersistentVolumeClaim `data-db-0`\? Add `-n NAMESPACE`/],
    ['diagnose pvc/Data_DB -n shop', /`Data_DB` cannot be the name of a PersistentVolumeClaim/],
    ['diagnose pvc/.. -n shop', /`\.\.` cannot be the name/],
    ['diagnose pvc/x -n ../y', /`\.\.\/y` cannot be the name of a namespace/],
    ['diagnose pvc/x -n kube.system', /cannot be the name of a namespace/],
    ['diagnose pvc/数据 -n shop', /cannot be the name of a PersistentVolumeClaim/],
    [`diagnose pvc/${'a'.repeat(254)} -n shop`, /cannot be the name/],
    ['diagnose pvc/a/b -n c', /Two namespaces are given, `a` and `c`/],
    ['diagnose node/shop/n1', /A Node lives in no namespace: write `node\/n1`/],
    ['diagnose pvc a b c', /cannot tell what `pvc a b c` names/],
    ['diagnose pvc/x -n', /The option `-n(, --namespace)?.*` needs a value after it/],
    ['diagnose --force', /do not know the option `--force`\. There is `-n NAMESPACE` and `--cluster NAME`/],
    ['diagnose --cluster prod', /do not know the cluster `prod`.* There are: `prod-eu`/],
  ];
  it.each(wrong)('%s is refused with a clear sentence, and nothing is taken in', async (text, says) => {
    const answer = await run(text);
    expect(answer.says).toMatch(says);
    expect(answer.body).toBeUndefined();
  });

  it('asks which cluster when there are several, and names them', async () => {
    surface.set({ clusters: ['prod-eu', 'prod-us'] });
    expect((await run('diagnose')).says).toBe('Which cluster? Add `--cluster NAME`. There are: `prod-eu`, `prod-us`.');
    expect((await run('diagnose --cluster prod-er')).says).toMatch(/Did you mean `prod-eu`\?/);
    expect((await run('diagnose --cluster prod-us')).body).toMatchObject({ cluster: 'prod-us' });
  });

  it('keeps a hostile name out of the request', async () => {
    for (const name of ["x';drop", '$(id)', '<!here>', 'a b', 'x%2f..', 'a\u202Eb', ''])
      await run(`diagnose pvc/${name} -n shop`);
    expect(surface.rows.map(({ body }) => scopeOf(body))).toEqual([]);
  });
});

describe('the other words', () => {
  const right: readonly (readonly [string, Partial<Request>])[] = [
    ['status', { kind: 'ask', topic: 'status', about: null }],
    ['status inc-7', { kind: 'ask', topic: 'status', about: 'inc-7' }],
    ['incidents', { kind: 'ask', topic: 'incidents', about: null }],
    ['audit inc-7', { kind: 'ask', topic: 'audit', about: 'inc-7' }],
    ['audit pvc/data-db-0 -n shop', { kind: 'ask', topic: 'audit', about: 'PersistentVolumeClaim shop/data-db-0' }],
    ['pause', { kind: 'pause', cluster: null }],
    ['pause --cluster prod-eu', { kind: 'pause', cluster: 'prod-eu' }],
    ['resume', { kind: 'resume', cluster: null }],
  ];
  it.each(right)('%s', async (text, body) => {
    expect((await run(text)).body).toMatchObject({ user: 'U1', channel: 'C1', ...body });
  });

  const wrong: readonly (readonly [string, RegExp])[] = [
    ['status a b', /Name one incident/],
    ['incidents all', /takes nothing after it/],
    ['audit', /Of what\?/],
    ['audit pvc/x', /In which namespace/],
    ['pause prod-eu', /Name a cluster with `--cluster NAME`/],
    ['resume --cluster nowhere', /do not know the cluster/],
    ['status -x', /do not know the option `-x`\. There are none here/],
  ];
  it.each(wrong)('%s is refused with a clear sentence', async (text, says) => {
    const answer = await run(text);
    expect(answer.says).toMatch(says);
    expect(answer.body).toBeUndefined();
  });

  it('pause means every cluster when none is named, also when there are several', async () => {
    surface.set({ clusters: ['a', 'b'] });
    expect((await run('pause')).body).toMatchObject({ kind: 'pause', cluster: null });
  });
});

describe('help', () => {
  it.each(['', 'help', 'HELP'])('comes for “%s” and names every word with its usage', async (text) => {
    const { says, body } = await run(text);
    for (const command of commands) expect(says).toContain(`\`${command.usage}\` ${textIn(command.does, 'en')}`);
    expect(body).toBeUndefined();
  });

  it('comes for an unknown word, with the nearest one', async () => {
    expect((await run('diagnoze pvc/x')).says).toMatch(
      /^I do not know the word `diagnoze`\. Did you mean `diagnose`\?\n\n\*I find out/,
    );
    expect((await run('xyzzyxyzzy')).says).toMatch(/^I do not know the word `xyzzyxyzzy`\.\n\n/);
  });

  it('names the clusters when there are several', async () => {
    surface.set({ clusters: ['prod-eu', 'prod-us'] });
    expect((await run('help')).says).toMatch(/Clusters: `prod-eu`, `prod-us`\./);
  });
});

it('unescapes what Slack escaped, once', () => {
  expect(wordsOf('a&amp;lt; &lt;b&gt;')).toEqual(['a&lt;', '<b>']);
});

describe('the doors', () => {
  const root = join(import.meta.dirname, '../../handlers');
  const files = ['commands', 'actions', 'views', 'events', 'shortcuts'].flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((file) => file !== 'index.ts')
      .map((file) => ({ folder, file, text: readFileSync(join(root, folder, file), 'utf8') })),
  );

  it.each(files)('$folder/$file is thin and writes only the inbox', ({ text }) => {
    expect(text.split('\n').length).toBeLessThanOrEqual(61);
    expect(text).not.toMatch(/@slack|ports\.ts|src\/(db|kube|queue|slack)/);
  });

  it('of commands have the word that their file is named after', () => {
    const words = files.filter(({ folder }) => folder === 'commands').map(({ file }) => file.replace('.ts', ''));
    expect(commands.map(({ word }) => word).toSorted()).toEqual(words.toSorted());
  });
});
