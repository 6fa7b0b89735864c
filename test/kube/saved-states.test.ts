import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import { Cluster, type ClusterInput } from '../../src/domain/cluster.ts';
import { Refused } from '../../src/domain/errors.ts';
import { type ResourceName, resourceNames, resources } from '../../src/domain/resources.ts';
import { reportIn, type SpokenReport } from '../../src/domain/spoken.ts';
import { textIn, verbatim } from '../../src/domain/text.ts';
import { type FileOptions, readFiles } from '../../src/kube/files.ts';
import { resourceOfRaw } from '../../src/kube/parse.ts';
import { writePlainYaml } from '../../src/kube/plain-yaml.ts';
import { runCli } from '../support/cli.ts';
import { absoluteTimes, loadCatalogue, NOW, parseScope } from '../support/fixture.ts';
import { type Files, saveBytes, saveFolder, saveTarGz, saveZip, tar } from '../support/saved.ts';

const options: FileOptions = { notRead: [], now: NOW };

interface Raw {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** A real incident: a node without power holds the volume of a pod that is to start elsewhere. */
const incident = parse(readFileSync('test/cases/023-multi-attach-node-powered-off.yaml', 'utf8')) as {
  readonly target: string;
  readonly objects: readonly unknown[];
};
const objects = incident.objects.map((object) => absoluteTimes(object)) as readonly Raw[];
const namespaces = [...new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []))];
const SECRET = 'hunter2-planted';

let catalogue: Catalogue;
beforeAll(async () => {
  catalogue = await loadCatalogue();
});

function resourceOf(object: unknown): ResourceName {
  const resource = resourceOfRaw(object);
  if (!resource) throw new Error('an object of no known kind');
  return resource;
}

const groupOf = (resource: ResourceName) => resources[resource].group || 'core';
const inside = (resource: ResourceName, namespace: string) =>
  objects.filter((object) => resourceOf(object) === resource && object.metadata.namespace === namespace);

/** What `oc adm must-gather` would have written, with every kind collected but those. */
function mustGather(without: readonly ResourceName[] = [], of: readonly string[] = namespaces): Files {
  const root = 'must-gather.local.1/quay-io-sha256-0/';
  const files: Record<string, string> = {
    [`${root}timestamp`]: '2026-11-30 11:58:00.1 +0000 UTC m=+0.1\n2026-11-30 12:00:00.9 +0000 UTC m=+120.9\n',
    [`${root}namespaces/${of[0]}/core/secrets.yaml`]: `kind: SecretList\napiVersion: v1\nitems:\n- data:\n    p: ${SECRET}\n`,
    [`${root}namespaces/${of[0]}/pods/p/c/c/logs/current.log`]: SECRET,
    [`${root}namespaces/${of[0]}/pods/p/c/c/logs/rotated/0.log.gz`]: SECRET,
    [`${root}host_service_logs/masters/kubelet_service.log`]: SECRET,
    [`${root}etcd_info/endpoint_status.json`]: `{"broken": ${SECRET}`,
    [`${root}cluster-scoped-resources/config.openshift.io/infrastructures.yaml`]: `broken: [${SECRET}`,
  };
  const all = [...objects, ...of.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }))];
  for (const resource of resourceNames) {
    if (without.includes(resource) || resource === 'backendvolumes') continue;
    if (!resources[resource].namespaced) {
      const folder = `${root}cluster-scoped-resources/${groupOf(resource)}/${resource}`;
      const mine = all.filter((object) => resourceOf(object) === resource);
      for (const object of mine) files[`${folder}/${object.metadata.name}.yaml`] = `---\n${writePlainYaml(object)}`;
      if (mine.length === 0)
        files[`${folder}.yaml`] = `apiVersion: v1\nkind: ${resources[resource].kind}List\nitems: []\n`;
      continue;
    }
    for (const namespace of of) {
      const list = {
        apiVersion: objects.find((object) => resourceOf(object) === resource)?.apiVersion ?? 'v1',
        kind: `${resources[resource].kind}List`,
        items: inside(resource, namespace),
      };
      files[`${root}namespaces/${namespace}/${groupOf(resource)}/${resource}.yaml`] = writePlainYaml(list);
    }
  }
  return files;
}

const dumped = ['events', 'services', 'daemonsets', 'deployments', 'replicasets', 'pods'] as const;

function dumpLists(): readonly (readonly [string, object])[] {
  const list = (kind: string, items: readonly object[]) => ({ kind: `${kind}List`, apiVersion: 'v1', items });
  const nodes = objects.filter((object) => resourceOf(object) === 'nodes');
  return [
    ['nodes', list('Node', nodes)],
    ...namespaces.flatMap((namespace): (readonly [string, object])[] => [
      [`${namespace}/replication-controllers`, list('ReplicationController', [])],
      ...dumped.map(
        (resource) =>
          [`${namespace}/${resource}`, list(resources[resource].kind, inside(resource, namespace))] as const,
      ),
    ]),
  ];
}

function dumpFolder(): Files {
  const lists = dumpLists().map(([path, list]) => [`${path}.json`, JSON.stringify(list, null, 4)] as const);
  return { ...Object.fromEntries(lists), [`${namespaces[0]}/p/logs.txt`]: SECRET };
}

/** What the command prints; a log may hold anything, and need not end with a line end. */
function dumpStream(write: (list: object) => string, between: string): string {
  const log = `==== START logs for container c of pod ${namespaces[0]}/p ====\n{"kind": "Pod"\n---\n${SECRET}==== END logs for container c of pod ${namespaces[0]}/p ====\n`;
  return `${dumpLists()
    .map(([, list]) => write(list))
    .join(between)}\n${log}`;
}

function reportOf(input: ClusterInput, scope = incident.target): SpokenReport {
  const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
  return reportIn(diagnose(new Cluster(input), parseScope(scope), catalogue, cost), 'en');
}

const unreadOf = (input: ClusterInput) => input.unread.map(({ resource }) => resource);
const reasonOf = (input: ClusterInput, of: ResourceName) =>
  textIn(input.unread.find(({ resource }) => resource === of)?.reason ?? verbatim(''), 'en');

describe('a must-gather', () => {
  const ways = [
    ['a folder', async (files: Files) => saveFolder(files)],
    ['a tar', async (files: Files) => saveBytes('a.tar', await tar(files))],
    ['a tar.gz', async (files: Files) => saveTarGz(files)],
    ['a zip', async (files: Files) => saveZip(files)],
    ['a tar.gz under a wrong name', async (files: Files) => saveBytes('upload', gzipSync(await tar(files)))],
  ] as const;

  it.each(ways)(
    '%s has the same cause as the objects, and everything else is passed over unread',
    async (_what, save) => {
      const { input, notes } = await readFiles([await save(mustGather())], { notRead: [], now: undefined });
      expect(unreadOf(input)).toEqual(['backendvolumes']);
      expect(input.now).toBe(NOW);
      expect(input.podCoverage).toEqual({ kind: 'all' });
      expect(reportOf(input).findings[0]).toMatchObject({ fault: 'multi-attach-node-down', verdict: 'found' });
      expect(notes.join('\n')).toMatch(/is a must-gather; 6 other files .* were passed over/);
      expect(JSON.stringify(input) + notes.join('\n')).not.toContain(SECRET);
    },
  );

  it('that lacks a kind leaves it unread, with the reason, and its faults unknown', async () => {
    const { input } = await readFiles([saveFolder(mustGather(['leases', 'volumeattachments']))], options);
    expect(unreadOf(input).toSorted()).toEqual(['backendvolumes', 'leases', 'volumeattachments']);
    const { findings, unknown } = reportOf(input);
    expect(findings.map(({ fault }) => fault)).not.toContain('multi-attach-node-down');
    const said = unknown.find(({ fault }) => fault === 'multi-attach-node-down');
    expect(said?.reason).toContain('not in the must-gather');
  });

  it('a list that was written empty is a kind that was read', async () => {
    const { input } = await readFiles([saveFolder(mustGather())], options);
    expect(objects.some((object) => resourceOf(object) === 'resourcequotas')).toBe(false);
    expect(unreadOf(input)).not.toContain('resourcequotas');
  });

  it('of some namespaces only does not make the claims of the others gone', async () => {
    const other = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } };
    const files = {
      ...mustGather(),
      'must-gather.local.1/quay-io-sha256-0/namespaces/elsewhere/elsewhere.yaml': writePlainYaml(other),
    };
    const { input } = await readFiles([saveFolder(files)], options);
    expect(reasonOf(input, 'persistentvolumeclaims')).toMatch(/has them of .*, not of elsewhere/);
    expect(input.podCoverage).toMatchObject({ kind: 'some', namespaces: new Set(namespaces) });
    expect(unreadOf(input)).not.toContain('events');
  });

  it('a volume that a namespace outside of it claims says that the claims are not all there', async () => {
    const [first] = namespaces;
    const { input } = await readFiles([saveFolder(mustGather([], ['kube-system']))], options);
    expect(reasonOf(input, 'persistentvolumeclaims')).toContain(`not of ${first}`);
  });

  it('of an object that is in no collected namespace nothing is concluded', async () => {
    const inspect = {
      'inspect.local.1/namespaces/shop/core/persistentvolumeclaims.yaml': 'apiVersion: v1\nkind: List\nitems: []\n',
    };
    const { input, notes } = await readFiles([saveFolder(inspect)], { ...options, now: undefined, clock: () => NOW });
    expect(reasonOf(input, 'persistentvolumeclaims')).toContain('does not say which namespaces there are');
    expect(reasonOf(input, 'persistentvolumes')).toBe('not in the must-gather');
    expect(notes.join('\n')).toContain('give --now');
  });

  it('what lies beside it is all there is of its kind', async () => {
    const attachments = writePlainYaml({
      apiVersion: 'v1',
      kind: 'List',
      items: objects.filter((object) => resourceOf(object) === 'volumeattachments'),
    });
    const files = { ...mustGather(['volumeattachments']), 'attachments.yaml': attachments };
    const { input } = await readFiles([saveFolder(files)], options);
    expect(unreadOf(input)).toEqual(['backendvolumes']);
    const apart = await readFiles(
      [saveFolder(mustGather(['volumeattachments'])), saveBytes('attachments.yaml', attachments)],
      options,
    );
    expect(unreadOf(apart.input)).toEqual(['backendvolumes']);
    expect(reportOf(apart.input).findings[0]?.fault).toBe('multi-attach-node-down');
  });
});

describe('a cluster-info dump', () => {
  const ways = [
    ['a folder', () => saveFolder(dumpFolder())],
    ['an archive', () => saveZip(dumpFolder())],
    [
      'the JSON that it prints',
      () =>
        saveBytes(
          'dump',
          dumpStream((list) => JSON.stringify(list, null, 4), '\n'),
        ),
    ],
    [
      'the YAML that it prints',
      () =>
        saveBytes(
          'dump',
          dumpStream((list) => writePlainYaml(list), '---\n'),
        ),
    ],
  ] as const;

  it.each(ways)(
    '%s: what it never holds is not read, and of its pods it is known whose they are',
    async (_what, save) => {
      const { input, notes } = await readFiles([save()], options);
      const unread = unreadOf(input);
      for (const resource of [
        'persistentvolumeclaims',
        'persistentvolumes',
        'volumeattachments',
        'leases',
        'namespaces',
      ] as const)
        expect(unread).toContain(resource);
      for (const resource of ['nodes', 'pods', 'events'] as const) expect(unread).not.toContain(resource);
      expect(reasonOf(input, 'persistentvolumes')).toBe('not in the cluster-info dump');
      expect(input.objects.pods.map(({ name }) => name).toSorted()).toEqual(
        objects.flatMap((object) => (resourceOf(object) === 'pods' ? [object.metadata.name] : [])).toSorted(),
      );
      expect(input.podCoverage.kind).toBe('some');
      expect(JSON.stringify(input) + notes.join('\n')).not.toContain(SECRET);
      expect(reportOf(input, 'cluster').findings.filter(({ severity }) => severity !== 'info')).toEqual([]);
      expect(reportOf(input, 'cluster').unknown.length).toBeGreaterThan(catalogue.faults.length / 2);
    },
  );

  it('with the other kinds beside it is a whole cluster', async () => {
    const rest = objects.filter((object) => !['nodes', ...dumped].includes(resourceOf(object)));
    const spaces = namespaces.map((name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }));
    const list = saveBytes(
      'rest.json',
      JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [...rest, ...spaces] }),
    );
    const { input } = await readFiles([saveFolder(dumpFolder()), list], options);
    expect(unreadOf(input)).not.toContain('deployments');
    expect(input.podCoverage).toEqual({ kind: 'all' });
    expect(unreadOf(input)).toContain('jobs');
  });
});

describe('what the API server makes for columns', () => {
  const [first] = objects;
  const table = (object: unknown) =>
    saveBytes(
      'table.json',
      JSON.stringify({
        kind: 'Table',
        apiVersion: 'meta.k8s.io/v1',
        columnDefinitions: [],
        rows: [{ cells: ['x'], object }],
      }),
    );

  it('is read when whole objects stand in it', async () => {
    const { input } = await readFiles([table(first)], options);
    expect(resourceNames.flatMap((name) => input.objects[name].map((object) => object.name))).toContain(
      first?.metadata.name,
    );
  });

  it.each([
    ['metadata alone', { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'x' } }],
    ['no objects', undefined],
    ['null', null],
  ])('with %s it is refused, and told how to save the rest', async (_what, object) => {
    await expect(readFiles([table(object)], options)).rejects.toThrow(
      /table\.json:1: is a Table that leaves out .* -o yaml/,
    );
  });

  it.each([
    [
      'a table',
      'NAMESPACE   NAME   STATUS   VOLUME   CAPACITY   ACCESS MODES   AGE\nshop   data   Bound   pv-1   1Gi   RWO   3d\n',
      /is a table that kubectl prints for people/,
    ],
    [
      'a wide table of nodes',
      'NAME   STATUS   ROLES   AGE   INTERNAL-IP   OS-IMAGE\nn1   Ready   <none>   3d   10.0.0.1   Linux\n',
      /is a table/,
    ],
    [
      'a table of events',
      'LAST SEEN   TYPE      REASON   OBJECT   MESSAGE\n3m   Warning   Failed   pod/x   no\n',
      /is a table/,
    ],
    ['a description', 'Name:          data\nNamespace:     shop\n', /is the text of kubectl describe/],
  ])('%s as text is refused, and told how to save the rest', async (_what, text, message) => {
    const reading = () => readFiles([saveBytes('pods.txt', text)], options);
    await expect(reading()).rejects.toThrow(message);
    await expect(reading()).rejects.toThrow(/^.*pods\.txt:1: .* -o yaml/);
    await expect(readFiles([saveFolder({ 'pods.yaml': text })], options)).rejects.toThrow(Refused);
  });
});

describe('an archive', () => {
  const claim = (name: string) =>
    `apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: ${name}\n  namespace: shop\n`;
  const small = { entryBytes: 2000, keptBytes: 4000, unpackedBytes: 100_000, entries: 20 };
  const read = (path: string) => readFiles([path], { ...options, limits: small });

  it('of loose files is as a folder of them, and a packed file as the file', async () => {
    const files = { 'a/one.yaml': claim('one'), './two.yml': claim('two'), 'notes.txt': 'x' };
    for (const path of [await saveTarGz(files), saveZip(files)]) {
      const { input } = await readFiles([path], options);
      expect(input.objects.persistentvolumeclaims.map(({ name }) => name).toSorted()).toEqual(['one', 'two']);
      expect(input.unread).toEqual([]);
    }
    const packed = await readFiles([saveBytes('one.yaml.gz', gzipSync(claim('one')))], options);
    expect(packed.input.objects.persistentvolumeclaims.map(({ name }) => name)).toEqual(['one']);
  });

  it.each(['../../etc/x.yaml', '/etc/x.yaml', 'a/../../x.yaml', 'C:\\x.yaml', '..\\x.yaml'])(
    'a path that leads out of it (%s) is passed over and told',
    async (name) => {
      for (const path of [
        await saveTarGz({ [name]: claim('evil'), 'a.yaml': claim('one') }),
        saveZip({ [name]: claim('evil'), 'a.yaml': claim('one') }),
      ]) {
        const { input, notes } = await readFiles([path], options);
        expect(input.objects.persistentvolumeclaims.map(({ name: of }) => of)).toEqual(['one']);
        expect(notes.join('\n')).toContain('leads out of the archive');
      }
    },
  );

  it('links in it are not followed', async () => {
    const links = [
      { name: 'b.yaml', type: 'symlink', linkname: '/etc/hostname' },
      { name: 'c.yaml', type: 'link', linkname: 'a.yaml' },
    ] as const;
    const { input } = await readFiles([await saveTarGz({ 'a.yaml': claim('one') }, links)], options);
    expect(input.objects.persistentvolumeclaims).toHaveLength(1);
  });

  const blank = (bytes: number) => '\n'.repeat(bytes);
  it.each<[string, () => Promise<string>, RegExp]>([
    [
      'one file too large',
      () => saveTarGz({ 'a.yaml': claim('a'), 'b.yaml': blank(3000) }),
      /saved\.tar\.gz!b\.yaml: is larger than 2000 bytes/,
    ],
    [
      'one file of a zip too large',
      async () => saveZip({ 'b.yaml': blank(3000) }),
      /saved\.zip!b\.yaml: is larger than/,
    ],
    [
      'many files too large together',
      () => saveTarGz({ 'a.yaml': blank(1900), 'b.yaml': blank(1900), 'c.yaml': blank(1900) }),
      /holds objects of more than 4000 bytes/,
    ],
    [
      'the same in a zip',
      async () => saveZip({ 'a.yaml': blank(1900), 'b.yaml': blank(1900), 'c.yaml': blank(1900) }),
      /holds objects of more than/,
    ],
    [
      'a bomb in a file that nobody reads',
      () => saveTarGz({ 'a.yaml': claim('a'), 'a.log': blank(3_000_000) }),
      /unpacks to more than 100000 bytes/,
    ],
    [
      'a bomb in a packed file',
      async () => saveBytes('a.yaml.gz', gzipSync(blank(3_000_000))),
      /a\.yaml\.gz: is too large/,
    ],
    [
      'too many files',
      () => saveTarGz(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`${i}.log`, '']))),
      /holds more than 20 files/,
    ],
  ])('%s is refused and told what to do', async (_what, save, message) => {
    const path = await save();
    await expect(read(path)).rejects.toThrow(message);
    await expect(read(path)).rejects.toThrow(Refused);
  });

  it.each<[string, () => Promise<Buffer>]>([
    [
      'cut in the middle',
      async () =>
        gzipSync(await tar({ 'a.yaml': claim('a'), 'b.yaml': blank(90_000) }), { level: 0 }).subarray(0, 40_000),
    ],
    [
      'with a wrong checksum',
      async () => Buffer.concat([(await tar({ 'a.yaml': claim('a') })).fill(1, 148, 156), Buffer.alloc(10)]),
    ],
    ['a zip without its end', async () => Buffer.from('PK\u0003\u0004 and nothing more')],
  ])('%s is refused as damaged', async (_what, bytes) => {
    const path = saveBytes('broken.tgz', await bytes());
    await expect(readFiles([path], options)).rejects.toThrow(/broken\.tgz: is damaged or no archive after all/);
    await expect(readFiles([path], options)).rejects.toThrow(Refused);
  });

  it.each([
    ['xz', [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]],
    ['bzip2', [0x42, 0x5a, 0x68, 0x39]],
    ['zstd', [0x28, 0xb5, 0x2f, 0xfd]],
    ['7z', [0x37, 0x7a, 0xbc, 0xaf]],
  ])('packed with %s is named as that', async (format, bytes) => {
    await expect(readFiles([saveBytes('a', Uint8Array.from(bytes))], options)).rejects.toThrow(
      `is compressed with ${format}: unpack it first`,
    );
  });

  it('a file in it that is no YAML is named with its line', async () => {
    const path = await saveTarGz({ 'a/b.yaml': `${claim('one')}---\nkind: Pod\n  metadata: [\n` });
    await expect(readFiles([path], options)).rejects.toThrow(/saved\.tar\.gz!a\/b\.yaml:[78]: is not YAML/);
  });
});

describe('secrets', () => {
  const value = { name: 'P', value: SECRET };
  const container = { name: 'a', image: 'i', env: [value], envFrom: [{ secretRef: { name: SECRET } }] };
  const meta = (name: string) => ({
    name,
    namespace: 'shop',
    uid: `u-${name}`,
    managedFields: [{ manager: SECRET }],
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': SECRET },
  });
  const spec = { containers: [container], initContainers: [container], ephemeralContainers: [container] };
  const template = { metadata: meta('t'), spec };
  const planted = [
    { apiVersion: 'v1', kind: 'Secret', metadata: meta('s'), data: { p: SECRET }, stringData: { p: SECRET } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta('c'), data: { p: SECRET } },
    { apiVersion: 'v1', kind: 'Pod', metadata: meta('p'), spec },
    ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet'].map((kind) => ({
      apiVersion: 'apps/v1',
      kind,
      metadata: meta('w'),
      spec: { template },
    })),
    { apiVersion: 'batch/v1', kind: 'Job', metadata: meta('j'), spec: { template } },
    { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: meta('pvc'), spec: {} },
    { apiVersion: 'v1', kind: 'PersistentVolume', metadata: meta('pv'), spec: {} },
    { apiVersion: 'v1', kind: 'SecretList', items: [{ metadata: meta('in-a-list'), data: { p: SECRET } }] },
  ];

  it.each([
    ['objects', () => saveBytes('a.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: planted }))],
    ['documents', () => saveBytes('a.yaml', planted.map((object) => writePlainYaml(object)).join('---\n'))],
    [
      'a table',
      () =>
        saveBytes(
          't.json',
          JSON.stringify({ kind: 'Table', apiVersion: 'meta.k8s.io/v1', rows: planted.map((object) => ({ object })) }),
        ),
    ],
    ['a zip', () => saveZip({ 'a.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: planted }) })],
  ])('in %s are nowhere in what is kept', async (_what, save) => {
    const { input, notes } = await readFiles([save()], options);
    expect(input.objects.pods).toHaveLength(1);
    expect(JSON.stringify(input) + notes.join()).not.toContain(SECRET);
  });

  it('are in no answer of the command line', async () => {
    const path = saveBytes('a.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: planted }));
    for (const output of ['text', 'json', 'markdown']) {
      const { out, err } = await runCli([
        'diagnose',
        '--snapshot',
        path,
        '--output',
        output,
        '--now',
        '2026-11-30T12:00:00Z',
      ]);
      expect(out).not.toBe('');
      expect(out + err).not.toContain(SECRET);
    }
  });

  it('are not in the message about an object that cannot be understood', async () => {
    const broken = planted.map((object) => ({ ...object, metadata: { ...object.metadata, finalizers: SECRET } }));
    const path = saveBytes('a.json', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: broken }));
    const { input, notes } = await readFiles([path], options);
    expect(unreadOf(input)).toContain('pods');
    expect(JSON.stringify(input) + notes.join()).not.toContain(SECRET);
  });
});
