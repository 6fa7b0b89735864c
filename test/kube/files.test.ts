import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { Refused } from '../../src/domain/errors.ts';
import { readFiles } from '../../src/kube/files.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'files-'));
});

function save(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const options = { notRead: [], now: 1_000 };
const claim = (name: string, namespace = 'shop') =>
  `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\n`;
const clock = () => 77;

describe('saved objects', () => {
  it('several documents, a List, JSON and folders are one world', async () => {
    mkdirSync(join(folder, 'sub'));
    save('a.yaml', `${claim('one')}---\n# a comment\n---\n${claim('two')}`);
    save(
      'sub/b.json',
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'List',
        items: [{ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } }],
      }),
    );
    save('notes.txt', 'not read');
    const { input, cost } = await readFiles([folder], options);
    expect(input.objects.persistentvolumeclaims.map(({ name }) => name)).toEqual(['one', 'two']);
    expect(input.objects.nodes.map(({ name }) => name)).toEqual(['n1']);
    expect(cost.requests).toBe(0);
    expect(cost.bytes).toBeGreaterThan(0);
  });

  it('a kind of which nothing is there counts as read and empty, unless it is named', async () => {
    const { input } = await readFiles([save('a.yaml', claim('one'))], { ...options, notRead: ['leases'] });
    expect(input.unread.map(({ resource }) => resource)).toEqual(['leases']);
    expect(input.podCoverage).toEqual({ kind: 'all' });
    expect(input.source).toBe('files');
  });

  it('objects of a kind that must count as not read are as if they were not there', async () => {
    const { input } = await readFiles([save('a.yaml', claim('one'))], {
      ...options,
      notRead: ['persistentvolumeclaims'],
    });
    expect(input.objects.persistentvolumeclaims).toEqual([]);
  });

  it("the Snapshot document brings clock, cluster, unread kinds and the pods' coverage", async () => {
    const first =
      'apiVersion: k8s-storage-bot.dev/v1\nkind: Snapshot\nnow: 2026-11-30T12:00:00Z\ncluster:\n  name: prod\n  uid: u-1\nnotRead:\n- resource: leases\n  reason: forbidden\npods:\n  namespaces: [shop]\n  nodes: [n1]\n';
    const { input } = await readFiles([save('a.yaml', `${first}---\n${claim('one')}`)], {
      notRead: [],
      now: undefined,
    });
    expect(input.now).toBe(Date.parse('2026-11-30T12:00:00Z'));
    expect(input.identity).toEqual({ name: 'prod', uid: 'u-1' });
    expect(input.unread).toEqual([{ resource: 'leases', reason: { en: 'forbidden', zh: 'forbidden' } }]);
    expect(input.podCoverage).toEqual({ kind: 'some', namespaces: new Set(['shop']), nodes: new Set(['n1']) });
  });

  it('the clock is the one that was asked for, else the file’s, else now', async () => {
    const path = save('a.yaml', claim('one'));
    const snapshot = save('b.yaml', 'apiVersion: k8s-storage-bot.dev/v1\nkind: Snapshot\nnow: 1970-01-01T00:00:05Z\n');
    const at = async (paths: string[], now: number | undefined) =>
      (await readFiles(paths, { notRead: [], now, clock })).input.now;
    expect(await at([path, snapshot], 3)).toBe(3);
    expect(await at([path, snapshot], undefined)).toBe(5_000);
    expect(await at([path], undefined)).toBe(77);
  });

  it('the uid of kube-system is the identity of the cluster', async () => {
    const { input } = await readFiles(
      [save('a.yaml', 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: kube-system\n  uid: u-9\n')],
      options,
    );
    expect(input.identity).toEqual({ name: null, uid: 'u-9' });
  });

  it('an object in two files is one object, the later file wins', async () => {
    const { input } = await readFiles(
      [save('a.yaml', claim('one')), save('b.yaml', `${claim('one')}  uid: later\n`)],
      options,
    );
    expect(input.objects.persistentvolumeclaims.map(({ uid }) => uid)).toEqual(['later']);
  });

  it('what lives in a namespace proves the namespace', async () => {
    const { input } = await readFiles([save('a.yaml', claim('one', 'shop'))], options);
    expect(input.objects.namespaces.map(({ name }) => name)).toEqual(['shop']);
  });

  it('backend volumes are read from their documents', async () => {
    const text =
      'apiVersion: k8s-storage-bot.dev/v1\nkind: BackendVolume\nmetadata:\n  name: vol/1\nspec:\n  driver: d\n  clusterId: c\n  createdAt: 2026-11-30T12:00:00Z\n  attachedTo: [i-1]\n  seenAt: [2026-11-30T12:00:00Z, 2026-11-30T13:00:00Z]\n';
    const { input } = await readFiles([save('a.yaml', text)], options);
    expect(input.objects.backendvolumes[0]).toMatchObject({
      name: 'vol/1',
      attachedTo: ['i-1'],
      createdAt: Date.parse('2026-11-30T12:00:00Z'),
      firstSeenAt: Date.parse('2026-11-30T12:00:00Z'),
      lastSeenAt: Date.parse('2026-11-30T13:00:00Z'),
    });
  });

  it('an object that cannot be understood makes its kind unread and is told', async () => {
    const { input, notes } = await readFiles(
      [save('a.yaml', 'apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  finalizers: x\n')],
      options,
    );
    expect(input.unread).toEqual([
      {
        resource: 'pods',
        reason: {
          en: expect.stringContaining('Pod p: metadata.finalizers') as string,
          zh: expect.stringContaining('1 个对象') as string,
        },
      },
    ]);
    expect(notes).toHaveLength(1);
  });

  it.each([
    ['no YAML', `${claim('one')}---\nkind: Pod\n  metadata: [\n`, /a\.yaml:[78]: is not YAML/],
    ['a bare word', 'hello world\n', /a\.yaml:1: is no Kubernetes object/],
    ['broken JSON', '{"kind": ', /a\.yaml:1: is not YAML/],
    [
      'a Snapshot with a wrong clock',
      'apiVersion: k8s-storage-bot.dev/v1\nkind: Snapshot\nnow: noon\n',
      /now is no RFC 3339 time/,
    ],
    [
      'a Snapshot with an unknown kind',
      'apiVersion: k8s-storage-bot.dev/v1\nkind: Snapshot\nnotRead: [sheep]\n',
      /unknown kind: "sheep"/,
    ],
    [
      'an alias bomb',
      `a: &a [x,x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 20 }, (_, i) => `b${i}: &b${i} [${Array.from({ length: 10 }, () => (i === 0 ? '*a' : `*b${i - 1}`)).join(',')}]`).join('\n')}\n`,
      /is not YAML/,
    ],
  ])('%s is refused with file and line', async (_what, text, message) => {
    const reading = readFiles([save('a.yaml', text)], { notRead: [], now: undefined });
    await expect(reading).rejects.toThrow(Refused);
    await expect(readFiles([save('a.yaml', text)], { notRead: [], now: undefined })).rejects.toThrow(message);
  });

  it('a file that is not there is refused by its name', async () => {
    await expect(readFiles([join(folder, 'nothing.yaml')], options)).rejects.toThrow(/nothing\.yaml: no such file/);
    await expect(readFiles([folder], options)).rejects.toThrow(/holds no \.yaml/);
  });
});
