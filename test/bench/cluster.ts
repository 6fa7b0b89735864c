/**
 * Diagnoses a large cluster on a real API server: 10,000 claims, volumes, attachments and pods on 500 nodes, ten of them
 * dead with 200 pods. Prints a JSON line for each figure, as `main.ts` does. Time stands beside the plain transfer of the
 * same lists in the same run. Every measurement is a process of its own, as a word of the command line is.
 */
import { execFile, spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { request } from 'undici';
import { z } from 'zod';
import { rbacYaml } from '../../src/cli/rbac.ts';
import { catalogue } from '../../src/wire.ts';
import { type Bed, startBed } from '../cluster/bed/bed.ts';
import { percentile } from '../kill/crowd.ts';
import { fleet, type Raw } from './fleet.ts';

const CHILD = fileURLToPath(new URL('./cluster.child.ts', import.meta.url));
/** As every process of the product has it. */
const SMALL_HEAP = ['--import', new URL('../../bin/small-heap.mjs', import.meta.url).href];
const MB = 1_000_000;
const CLAIMS = 10_000;
const NODES = 500;
const DOWN_NODES = 10;
const STRANDED = (CLAIMS / NODES) * DOWN_NODES;
const TIMES = 5;
/** Puts in one transaction; etcd takes 128. */
const AT_ONCE = 100;

const targets = ['targeted-claim', 'targeted-pod', 'targeted-node'];

/** Where the API server keeps each kind in its etcd. */
const folders: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  Node: 'minions',
  Lease: 'leases',
  ReplicaSet: 'replicasets',
  StorageClass: 'storageclasses',
  PersistentVolumeClaim: 'persistentvolumeclaims',
  PersistentVolume: 'persistentvolumes',
  VolumeAttachment: 'volumeattachments',
  Pod: 'pods',
};

const measured = z.object({
  milliseconds: z.number(),
  requests: z.number(),
  bytes: z.number(),
  residentBytes: z.number(),
  nodes: z.number(),
  pods: z.number(),
});
export type Measured = z.infer<typeof measured>;

function tell(name: string, value: number, unit: string, most?: number, more: object = {}): void {
  const rounded = Math.round(value * 1000) / 1000;
  const target = most === undefined ? {} : { target: `<= ${most}`, met: value <= most };
  console.log(JSON.stringify({ name, value: rounded, unit, ...target, ...more }));
}

async function main(): Promise<void> {
  const build = fileURLToPath(new URL('../cluster/build.ts', import.meta.url));
  if (spawnSync(process.execPath, [build], { stdio: 'inherit' }).status !== 0) throw new Error('no test bed');
  const programs = spawnSync(process.execPath, [build, '--print-dir'], { encoding: 'utf8' }).stdout.trim();
  console.log(JSON.stringify({ cores: availableParallelism(), load: loadavg()[0], node: process.version }));
  const bed = await startBed('bench', programs, { isApiOnly: true });
  try {
    await bed.apply(rbacYaml(catalogue));
    await fill(bed);
    await measureAll(bed);
  } finally {
    await bed.close();
  }
}

async function measureAll(bed: Bed): Promise<void> {
  // The first one warms the API server; what it asked for is what is transferred plainly.
  await child(bed, 'whole');
  const lists = await listsOf(bed);
  const whole: Measured[] = [];
  const oneByOne: Measured[] = [];
  const plain: Measured[] = [];
  for (let i = 0; i < TIMES; i += 1) {
    oneByOne.push(await child(bed, 'one-by-one', lists));
    plain.push(await child(bed, 'side-by-side', lists));
    whole.push(await child(bed, 'whole'));
  }
  const median = (some: readonly Measured[], of: (one: Measured) => number) => percentile(some.map(of), 0.5);
  const [first] = whole;
  if (first?.nodes !== DOWN_NODES || first.pods !== STRANDED)
    throw new Error(`of ${STRANDED} pods behind ${DOWN_NODES} nodes ${first?.pods} behind ${first?.nodes} were found`);
  const together = median(plain, ({ milliseconds }) => milliseconds);
  const transfer = median(oneByOne, ({ milliseconds }) => milliseconds);
  const time = median(whole, ({ milliseconds }) => milliseconds);
  tell('cluster-found', first.pods, 'pods', undefined, { nodes: first.nodes });
  tell('cluster-transfer', transfer, 'ms', undefined, { bytes: median(plain, ({ bytes }) => bytes) });
  tell('cluster-transfer-side-by-side', together, 'ms');
  tell('cluster-time', time, 'ms', undefined, { requests: first.requests, bytes: first.bytes });
  tell('cluster-ratio', time / transfer, '1', 1.5);
  tell('cluster-ratio-side-by-side', time / together, '1');
  tell('cluster-resident', median(whole, ({ residentBytes }) => residentBytes) / MB, 'MB', 400);
  for (const name of targets) {
    const runs: Measured[] = [];
    for (let i = 0; i < TIMES; i += 1) runs.push(await child(bed, name));
    if (runs.some(({ nodes }) => nodes === 0)) throw new Error(`${name} did not find the dead node`);
    tell(`${name}-requests`, Math.max(...runs.map(({ requests }) => requests)), 'requests', 15);
    const { bytes } = runs[0] ?? { bytes: 0 };
    tell(
      `${name}-time`,
      median(runs, ({ milliseconds }) => milliseconds),
      'ms',
      1000,
      { bytes },
    );
  }
}

/** Straight into the storage, as they would lie there: times and deletions of the past cannot be asked for. */
async function fill(bed: Bed): Promise<void> {
  const put = async (objects: readonly Raw[]) => {
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const success = objects.map((object) => ({
      requestPut: { key: base64(keyOf(object)), value: base64(JSON.stringify(asWritten(object))) },
    }));
    const { statusCode, body } = await request(`${bed.etcd}/v3/kv/txn`, {
      method: 'POST',
      body: JSON.stringify({ success }),
    });
    const said = await body.text();
    if (statusCode !== 200) throw new Error(`etcd refused the fleet: ${said}`);
  };
  let batch: Raw[] = [];
  for (const object of fleet(CLAIMS, Date.now(), { nodes: NODES, downNodes: DOWN_NODES })) {
    batch.push(object);
    if (batch.length < AT_ONCE) continue;
    await put(batch);
    batch = [];
  }
  await put(batch);
  const lastPod = `pod ns${(CLAIMS - 1) % 100}/p${CLAIMS - 1}`;
  await bed.untilThere(lastPod);
}

/** With the managed fields that every object has which came through the API: half of its size, and nobody's interest. */
function asWritten(object: Raw): object {
  const { apiVersion, kind, metadata: meta, ...parts } = object;
  const managed = {
    manager: 'kube-controller-manager',
    operation: 'Update',
    apiVersion,
    time: '2026-11-30T12:00:00Z',
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsOf({ metadata: meta, ...parts }),
  };
  return { apiVersion, kind, metadata: { ...metaShape.parse(meta), managedFields: [managed] }, ...parts };
}

function fieldsOf(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([key, part]: [string, unknown]) => {
      const isMap = typeof part === 'object' && part !== null && !Array.isArray(part);
      return [`f:${key}`, isMap ? fieldsOf(part) : {}];
    }),
  );
}

const metaShape = z.looseObject({});
const metadata = z.object({ name: z.string(), namespace: z.string().optional() });

function keyOf(object: Raw): string {
  const folder = folders[object.kind];
  if (folder === undefined) throw new Error(`nobody knows where ${object.kind} lies`);
  const { name, namespace } = metadata.parse(object['metadata']);
  return ['/registry', folder, ...(namespace === undefined ? [] : [namespace]), name].join('/');
}

/** The first pages that the product asked for, by the API server's own log. */
async function listsOf(bed: Bed): Promise<readonly string[]> {
  const lines = await bed.audit.ofTheBot();
  const asked = lines.filter(({ verb, responseStatus }) => verb === 'list' && responseStatus?.code === 200);
  return [...new Set(asked.map(({ requestURI }) => requestURI))].filter((uri) => !uri.includes('continue='));
}

async function child(bed: Bed, what: string, lists: readonly string[] = []): Promise<Measured> {
  const args = ['--measure', what, '--kubeconfig', bed.credentials.kubeconfig('read')];
  const plain = ['--server', bed.api.server, '--token', bed.credentials.token('read'), '--ca', bed.caFile];
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...SMALL_HEAP, CHILD, ...args, ...(lists.length > 0 ? [...plain, ...lists] : [])],
    { maxBuffer: MB },
  );
  return measured.parse(JSON.parse(stdout));
}

await main();
