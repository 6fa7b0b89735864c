/** One measurement of `cluster.ts`, in a process of its own that loads nothing but the product's reader and catalogue. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Agent, request } from 'undici';
import { diagnose, needsOf } from '../../src/diagnose.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { faults } from '../../src/faults/index.ts';
import { openOneReader } from '../../src/kube/clusters.ts';
import { remediations } from '../../src/remediations/index.ts';
import type { Measured } from './cluster.ts';

const catalogue = { faults, remediations };
/** As many as the product's own. */
const CONNECTIONS = 8;

const scopes: Readonly<Record<string, ScopeRef>> = {
  whole: { kind: 'Cluster' },
  'targeted-claim': { kind: 'PersistentVolumeClaim', namespace: 'ns0', name: 'c0' },
  'targeted-pod': { kind: 'Pod', namespace: 'ns0', name: 'r0' },
  'targeted-node': { kind: 'Node', namespace: null, name: 'f0' },
};

async function diagnoseIn(kubeconfig: string, scope: ScopeRef): Promise<Measured> {
  const began = performance.now();
  const settings = { kubeconfig, home: undefined, allowedPlugins: [] };
  const reader = openOneReader(settings, undefined, { clock: { now: () => Date.now() }, onRaw: undefined });
  const { cluster, cost } = await reader.read(
    { scope, needs: needsOf(catalogue, scope) },
    AbortSignal.timeout(120_000),
  );
  const report = diagnose(cluster, scope, catalogue, cost);
  const milliseconds = performance.now() - began;
  const dead = report.findings.filter(({ fault }) => fault === 'multi-attach-node-down');
  const waiting = dead.flatMap(({ involved, affected }) => [...involved, ...affected]);
  const pods = waiting.filter(({ kind, name }) => kind === 'Pod' && name.startsWith('r'));
  return {
    milliseconds,
    requests: cost.requests,
    bytes: cost.bytes,
    residentBytes: process.resourceUsage().maxRSS * 1024,
    nodes: new Set(dead.map(({ subject }) => subject.name)).size,
    pods: new Set(pods.map(({ namespace, name }) => `${namespace}/${name}`)).size,
  };
}

/**
 * Every list to its end and no look at it: one after the other as a loop of curl would, or side by side as the product
 * asks for them, while it judges what has come.
 */
async function transfer(
  server: string,
  token: string,
  ca: string,
  lists: readonly string[],
  isTogether: boolean,
): Promise<Measured> {
  const began = performance.now();
  const dispatcher = new Agent({ connections: CONNECTIONS, connect: { ca: readFileSync(ca) } });
  let requests = 0;
  let bytes = 0;
  const all = async (uri: string) => {
    for (let next: string | undefined = ''; next !== undefined; ) {
      const at = new URL(uri, server);
      if (next !== '') at.searchParams.set('continue', next);
      const { body } = await request(at, { dispatcher, headers: { authorization: `Bearer ${token}` } });
      requests += 1;
      const page = Buffer.from(await body.arrayBuffer());
      bytes += page.byteLength;
      // The metadata stands before the items.
      next = /"continue":"([^"]+)"/.exec(page.subarray(0, 1000).toString())?.[1];
    }
  };
  if (isTogether) await Promise.all(lists.map(all));
  else for (const uri of lists) await all(uri);
  const milliseconds = performance.now() - began;
  await dispatcher.close();
  return { milliseconds, requests, bytes, residentBytes: process.resourceUsage().maxRSS * 1024, nodes: 0, pods: 0 };
}

const { values, positionals } = parseArgs({
  options: {
    measure: { type: 'string', default: 'whole' },
    kubeconfig: { type: 'string', default: '' },
    server: { type: 'string', default: '' },
    token: { type: 'string', default: '' },
    ca: { type: 'string', default: '' },
  },
  allowPositionals: true,
});
const scope = scopes[values.measure];
const result = scope
  ? await diagnoseIn(values.kubeconfig, scope)
  : await transfer(values.server, values.token, values.ca, positionals, values.measure === 'side-by-side');
console.log(JSON.stringify(result));
