import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import { type Chain, chainOf, FEWEST_OBJECTS, MOST_BOXES } from '../../src/domain/chain.ts';
import { describeChain } from '../../src/domain/chain-text.ts';
import type { Finding } from '../../src/domain/report.ts';
import { verbatim } from '../../src/domain/text.ts';
import { faultsOfProse } from '../support/chinese.ts';
import { diagnoseObjects, loadCatalogue, parseScope, toCluster } from '../support/fixture.ts';

const caseFile = z.object({
  target: z.string(),
  objects: z.array(z.record(z.string(), z.unknown())),
  check: z.object({
    culprit: z.array(z.object({ kind: z.string(), namespace: z.string().nullish(), name: z.string() })).nullish(),
  }),
});
const cases = readdirSync('test/cases')
  .filter((name) => name.endsWith('.yaml'))
  .toSorted()
  .map((name) => ({ id: name.slice(0, -5), ...caseFile.parse(parse(readFileSync(`test/cases/${name}`, 'utf8'))) }));
type Case = (typeof cases)[number];

let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = await loadCatalogue();
});

function chainsOf(
  one: Case,
  objects = one.objects,
): readonly { readonly finding: Finding<unknown>; readonly chain: Chain }[] {
  const cluster = toCluster(objects);
  return diagnoseObjects(objects, parseScope(one.target), catalogue).findings.flatMap((finding) => {
    const chain = chainOf(finding, cluster);
    return chain ? [{ finding, chain }] : [];
  });
}

/** Ids that can be reached from the first node, whatever the direction of the edges. */
function reachable({ nodes, edges }: Chain): ReadonlySet<string> {
  const reached = new Set(nodes.slice(0, 1).map(({ id }) => id));
  for (let before = -1; before < reached.size; ) {
    before = reached.size;
    for (const { from, to } of edges) {
      if (reached.has(from)) reached.add(to);
      if (reached.has(to)) reached.add(from);
    }
  }
  return reached;
}

describe('the chain of every finding of a real incident', () => {
  it.each(cases)('$id: has one culprit, no loose end, and few enough boxes to be read', (one) => {
    for (const { chain } of chainsOf(one)) {
      const ids = chain.nodes.map(({ id }) => id);
      expect(chain.nodes.filter(({ role }) => role === 'culprit').map(({ id }) => id)).toEqual([chain.culprit]);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.length).toBeGreaterThanOrEqual(FEWEST_OBJECTS);
      expect(ids.length).toBeLessThanOrEqual(MOST_BOXES);
      expect(chain.edges.flatMap(({ from, to }) => [from, to]).filter((id) => !ids.includes(id))).toEqual([]);
      expect(reachable(chain).size).toBe(ids.length);
    }
  });

  it.each(cases)('$id: does not depend on the order of the objects', (one) => {
    const turned = [...one.objects].reverse();
    expect(chainsOf(one, turned).map(({ chain }) => chain)).toEqual(chainsOf(one).map(({ chain }) => chain));
  });

  it('blames what the case blames', () => {
    const wrong = cases.flatMap((one) => {
      const [first] = chainsOf(one);
      const blamed = (one.check.culprit ?? []).map(({ kind, namespace, name }) => `${kind}/${namespace ?? ''}/${name}`);
      return first === undefined || blamed.length === 0 || blamed.includes(first.chain.culprit) ? [] : [one.id];
    });
    // Its class is at fault, which only the driver's words say; the finding is about the claim.
    expect(wrong).toEqual(['063-kms-ghost-volume']);
  });

  it('is told in one sentence that names the culprit and keeps to the limit of Slack', () => {
    for (const one of cases) {
      for (const { chain } of chainsOf(one)) {
        const says = describeChain(chain, 'en');
        const culprit = chain.nodes.find(({ id }) => id === chain.culprit);
        expect(says).toContain(`The cause is ${culprit?.kind} `);
        expect(says.length).toBeLessThanOrEqual(1900);
        expect(describeChain(chain, 'en', 100)).toHaveLength(100);
      }
    }
  });

  it('is told in Chinese, too, with the words of Kubernetes alone left as they are', () => {
    const chains = cases.flatMap((one) => chainsOf(one).map(({ chain }) => chain));
    const verbs = new Set(chains.flatMap(({ edges }) => edges.map(({ says }) => says)).filter((says) => says !== ''));
    const own = new RegExp(
      `[\\s（](?:${[...verbs].join('|')}|not found|ready|attached|detaching|cordoned|more)[\\s）]`,
    );
    expect(verbs.size).toBeGreaterThan(12);
    for (const chain of chains) {
      const says = describeChain(chain, 'zh');
      expect(says).toMatch(/^关系图。原因是 /);
      expect(says).not.toMatch(own);
      expect(faultsOfProse(says)).toEqual([]);
    }
  });

  it('keeps who does what to whom in Chinese', () => {
    const node = (kind: string, name: string, state: string | null) =>
      ({ id: name, kind, namespace: null, name, state, role: 'stuck', more: 0 }) as const;
    const chain: Chain = {
      nodes: [
        node('PersistentVolume', 'pv-1', 'Bound'),
        { ...node('VolumeAttachment', 'va-1', 'detach fails'), role: 'culprit' },
        node('StatefulSet', 'db', '0 of 2 ready'),
        { ...node('Pod', 'more/Pod', null), name: '', more: 12 },
      ],
      edges: [
        { from: 'pv-1', to: 'va-1', says: 'attached by' },
        { from: 'db', to: 'more/Pod', says: 'owns' },
      ],
      culprit: 'va-1',
    };
    expect(describeChain(chain, 'zh')).toBe(
      '关系图。原因是 VolumeAttachment va-1（解除挂接失败）；受影响：PersistentVolume pv-1（Bound）、StatefulSet db（2 个副本中有 0 个就绪）、另外 12 个 Pod；PersistentVolume pv-1 由 VolumeAttachment va-1 挂接；StatefulSet db 是另外 12 个 Pod 的属主。',
    );
  });
});

function pod(no: number): Record<string, unknown> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `web-${String(no).padStart(3, '0')}`, namespace: 'shop', uid: `pod-${no}` },
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'main', image: 'web' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
    status: { phase: 'Pending' },
  };
}

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'shop', uid: 'c', deletionTimestamp: 'NOW-1h', finalizers: ['x/y'] },
  spec: { volumeName: 'pv' },
  status: { phase: 'Bound' },
};

function findingOn(objects: readonly Record<string, unknown>[], change: Partial<Finding>): Finding {
  const cluster = toCluster(objects);
  const subject = cluster.objects.persistentvolumeclaims[0]?.ref;
  const report = diagnose(cluster, parseScope('cluster'), { faults: [], remediations: [] }, emptyCost);
  expect(report.findings).toEqual([]);
  if (!subject) throw new Error('no claim among the objects');
  return {
    id: 'f1',
    fault: 'claim-held-by-pod',
    reason: null,
    verdict: 'found',
    severity: 'warning',
    causedBy: null,
    subject,
    involved: [],
    affected: [],
    summary: verbatim(''),
    explanation: verbatim(''),
    evidence: [],
    unread: [],
    offers: [],
    manual: [],
    ...change,
  };
}

const emptyCost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };

describe('a chain with too much in it', () => {
  const many = [claim, ...Array.from({ length: 39 }, (_, no) => pod(no))];
  const cluster = toCluster(many);
  const affected = cluster.objects.pods.map(({ ref }) => ref);

  it('folds objects of one kind into a box that counts them', () => {
    const chain = chainOf(findingOn(many, { affected }), cluster);
    expect(chain?.nodes.map(({ kind, name, more }) => `${kind} ${more > 0 ? `and ${more} more` : name}`)).toEqual([
      'Pod web-000',
      'Pod web-001',
      'Pod and 37 more',
      'PersistentVolumeClaim data',
    ]);
    expect(chain?.edges).toContainEqual({ from: 'more/Pod', to: 'PersistentVolumeClaim/shop/data', says: 'uses' });
  });

  it('keeps to twelve boxes when every object is of another kind, and counts the rest', () => {
    const involved = Array.from({ length: 30 }, (_, no) => ({
      apiVersion: 'example.com/v1',
      kind: `Kind${no}`,
      namespace: null,
      name: `thing-${no}`,
      uid: `u-${no}`,
    }));
    const chain = chainOf(findingOn([claim], { involved }), toCluster([claim]));
    expect(chain?.nodes).toHaveLength(MOST_BOXES);
    const folded = chain?.nodes.reduce((sum, { more }) => sum + (more || 1), 0);
    expect(folded).toBe(31);
  });

  it('is no chain when fewer than three objects hang together', () => {
    expect(chainOf(findingOn([claim], {}), toCluster([claim]))).toBeUndefined();
  });

  it('does not show an object as lost that was not looked for', () => {
    const involved = [
      { apiVersion: 'v1', kind: 'Node', namespace: null, name: 'n9', uid: null },
      { apiVersion: 'v1', kind: 'PersistentVolume', namespace: null, name: 'pv', uid: null },
    ];
    const finding = findingOn([claim], { involved });
    const roles = (notRead: readonly ('nodes' | 'persistentvolumes')[]) =>
      chainOf(finding, toCluster([claim], { notRead }))?.nodes.map(({ kind, role }) => `${kind} ${role}`);
    expect(roles([])).toEqual(['PersistentVolumeClaim culprit', 'PersistentVolume lost', 'Node lost']);
    expect(roles(['nodes'])).toEqual(['PersistentVolumeClaim culprit', 'PersistentVolume lost', 'Node other']);
  });
});
