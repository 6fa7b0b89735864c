import { beforeAll, describe, expect, it } from 'vitest';
import { type Catalogue, diagnose } from '../src/diagnose.ts';
import { Cluster } from '../src/domain/cluster.ts';
import type { ObjectTable } from '../src/domain/objects.ts';
import { refKey } from '../src/domain/ref.ts';
import { type Finding, isTrouble, type Report } from '../src/domain/report.ts';
import type { ResourceName } from '../src/domain/resources.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import type { SpokenReport } from '../src/domain/spoken.ts';
import { faults } from '../src/faults/index.ts';
import { parseObjects, resourceOfRaw } from '../src/kube/parse.ts';
import { remediations } from '../src/remediations/index.ts';
import { type Case, cases, fallbacks, type KubeObject } from './support/cases.ts';
import { absoluteTimes, diagnoseObjects, NOW, toCluster } from './support/fixture.ts';
import { renamer } from './support/rename.ts';

/**
 * What must not matter to an answer does not, over all cases: the order of the objects, events, names, and what stands
 * healthy beside the trouble. And what an answer rests on does: without it there is none.
 */
const catalogue: Catalogue = { faults, remediations };
let crowd: ObjectTable;

beforeAll(() => {
  crowd = parseObjects(bystanders(1000).map((object) => absoluteTimes(object))).objects;
});

function run(one: Case, objects: readonly KubeObject[] = one.objects, scope: ScopeRef = one.scope): SpokenReport {
  return diagnoseObjects(objects, scope, catalogue);
}

const isEvent = (object: KubeObject) => object['kind'] === 'Event';

describe('what is found depends on the state alone', () => {
  it.each(cases)('$id: not on the order of the objects', (one) => {
    const expected = gist(run(one));
    expect(gist(run(one, one.objects.toReversed()))).toEqual(expected);
    expect(gist(run(one, shuffled(one.objects)))).toEqual(expected);
  });

  it.each(cases.filter(({ id }) => !(id in fallbacks)))('$id: not on events', (one) => {
    const silent = one.objects.filter((object) => !isEvent(object));
    expect(gist(run(one, silent)).map(withoutReason)).toEqual(gist(run(one)).map(withoutReason));
  });

  it.each(cases)('$id: not on a thousand healthy bystanders', (one) => {
    const mine = toCluster(one.objects);
    const cluster = new Cluster({
      identity: mine.identity,
      now: NOW,
      objects: together(mine.objects, crowd),
      unread: [],
      podCoverage: { kind: 'all' },
      source: 'files',
    });
    const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
    expect(gist(diagnose(cluster, one.scope, catalogue, cost))).toEqual(gist(run(one)));
  });

  it.each(cases)('$id: not on names', (one) => {
    const { rename, renameText, count } = renamer(one.objects);
    expect(count).toBeGreaterThan(0);
    const scope =
      one.scope.kind === 'Cluster'
        ? one.scope
        : { ...one.scope, name: rename(one.scope.name), namespace: one.scope.namespace && rename(one.scope.namespace) };
    const expected = gist(run(one)).map((line) => ({ ...line, ...renamedLine(line, rename) }));
    expect(gist(run(one, renameText(one.objects), scope))).toEqual(expected);
  });
});

describe('what an answer rests on must have been read', () => {
  it.each(cases.flatMap((one) => restsOn(one)))(
    '$id without $kind: unknown and why, and no other cause',
    ({ one, kind }) => {
      const before = run(one);
      const report = diagnoseObjects(
        one.objects.filter((object) => resourceOfRaw(object) !== kind),
        one.scope,
        catalogue,
        { notRead: [kind] },
      );
      const needing = before.findings.filter(({ fault }) => needsOf(fault).includes(kind));
      for (const { fault } of needing) {
        expect(report.findings.map((finding) => finding.fault)).not.toContain(fault);
        expect(report.unknown.find((entry) => entry.fault === fault)?.reason).toContain(`could not read ${kind}`);
      }
      // A report without a cause is not clear either.
      if (before.findings.some(isTrouble) && !report.findings.some(isTrouble)) expect(report.unknown).not.toEqual([]);
      const causes = new Set(before.findings.filter(isCause).map(keyOf));
      const others = report.findings.filter((finding) => isCause(finding) && !causes.has(keyOf(finding)));
      // Less can be told apart, so another cause may be told: with the reservation beside it.
      expect(others.filter(({ unread }) => !unread.some(({ resource }) => resource === kind)).map(keyOf)).toEqual([]);
      const offered = new Set(offersOf(before));
      expect(offersOf(report).filter((offer) => !offered.has(offer))).toEqual([]);
    },
  );
});

/** Every kind that a finding of the case needs. */
function restsOn(one: Case): readonly { readonly one: Case; readonly id: string; readonly kind: ResourceName }[] {
  const found = run(one).findings.filter(({ severity }) => severity !== 'info');
  const kinds = new Set(found.flatMap(({ fault }) => needsOf(fault)));
  const present = one.objects.flatMap((object) => resourceOfRaw(object) ?? []);
  return [...new Set([...kinds, ...present])].map((kind) => ({ one, id: one.id, kind }));
}

function together(mine: ObjectTable, others: ObjectTable): ObjectTable {
  return {
    ...mine,
    persistentvolumeclaims: mine.persistentvolumeclaims.concat(others.persistentvolumeclaims),
    persistentvolumes: mine.persistentvolumes.concat(others.persistentvolumes),
    volumeattachments: mine.volumeattachments.concat(others.volumeattachments),
    nodes: mine.nodes.concat(others.nodes),
    pods: mine.pods.concat(others.pods),
  };
}

function isCause(finding: Finding<unknown>): boolean {
  return isTrouble(finding) && finding.causedBy === null;
}

function keyOf({ fault, subject }: Finding<unknown>): string {
  return `${fault} ${refKey(subject)}`;
}

function needsOf(fault: string): readonly ResourceName[] {
  return catalogue.faults.find(({ id }) => id === fault)?.needs ?? [];
}

function offersOf(report: SpokenReport): readonly string[] {
  return report.findings.flatMap(({ offers }) => offers.map(({ remediation }) => remediation));
}

/**
 * What must not change: which faults, about what, with which offers, in which order. Not what is merely worth knowing:
 * whose sidecar a controller is may become unclear when there is a second driver.
 */
function gist(report: Report<unknown>) {
  const told = report.findings.filter(({ severity }) => severity !== 'info');
  return told.map(({ fault, reason, verdict, subject, causedBy, offers }) => ({
    fault,
    reason,
    verdict,
    kind: subject.kind,
    namespace: subject.namespace,
    name: subject.name,
    causedBy,
    offers: offers.map(({ remediation, plan }) => ({
      remediation,
      targets: plan.map(({ resource, namespace, name }) => ({ resource, namespace, name })),
    })),
  }));
}

/** Which answer the backend gave may stand in events alone. */
function withoutReason({ reason: _reason, ...line }: Line) {
  return line;
}

type Line = ReturnType<typeof gist>[number];

function renamedLine({ name, namespace, offers }: Line, rename: (name: string) => string): Partial<Line> {
  return {
    name: rename(name),
    namespace: namespace && rename(namespace),
    offers: offers.map(({ remediation, targets }) => ({
      remediation,
      targets: targets.map((target) => ({
        ...target,
        name: rename(target.name),
        namespace: target.namespace && rename(target.namespace),
      })),
    })),
  };
}

/** Always the same order for the same objects: a test that depends on chance proves nothing twice. */
function shuffled<T>(items: readonly T[]): readonly T[] {
  return items
    .map((item, i) => ({ item, key: (i * 7919 + 13) % 1009 }))
    .toSorted((a, b) => a.key - b.key)
    .map(({ item }) => item);
}

/** Claims with their volumes, attachments and running pods, in namespaces and on nodes of their own. */
function bystanders(count: number): readonly KubeObject[] {
  return Array.from({ length: count }, (_, i) => i).flatMap((i) => bystander(i));
}

function bystander(i: number): readonly KubeObject[] {
  const meta = (kind: string, name: string, namespace?: string) => ({
    name,
    uid: `0b000000-${kind}-${i}`,
    creationTimestamp: 'NOW-3d',
    ...(namespace === undefined ? {} : { namespace }),
  });
  const namespace = `by-${i % 10}`;
  const node = `by-node-${i}`;
  const handle = `by-handle-${i}`;
  const unique = `kubernetes.io/csi/by.example.com^${handle}`;
  const finalizer = 'external-provisioner.volume.kubernetes.io/finalizer';
  return [
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...meta('claim', `by-${i}`, namespace), finalizers: ['kubernetes.io/pvc-protection'] },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'by',
        volumeName: `by-pv-${i}`,
        resources: { requests: { storage: '1Gi' } },
      },
      status: { phase: 'Bound', capacity: { storage: '1Gi' } },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { ...meta('volume', `by-pv-${i}`), finalizers: ['kubernetes.io/pv-protection', finalizer] },
      spec: {
        accessModes: ['ReadWriteOnce'],
        persistentVolumeReclaimPolicy: 'Delete',
        storageClassName: 'by',
        capacity: { storage: '1Gi' },
        claimRef: { kind: 'PersistentVolumeClaim', namespace, name: `by-${i}`, uid: `0b000000-claim-${i}` },
        csi: { driver: 'by.example.com', volumeHandle: handle },
      },
      status: { phase: 'Bound' },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: meta('attachment', `by-va-${i}`),
      spec: { attacher: 'by.example.com', nodeName: node, source: { persistentVolumeName: `by-pv-${i}` } },
      status: { attached: true },
    },
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { ...meta('node', node), labels: { 'kubernetes.io/hostname': node } },
      spec: { unschedulable: true },
      status: {
        conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: 'NOW-10s', lastTransitionTime: 'NOW-3d' }],
        volumesInUse: [unique],
        volumesAttached: [{ name: unique, devicePath: '' }],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta('pod', `by-pod-${i}`, namespace),
      spec: {
        nodeName: node,
        containers: [{ name: 'app', image: 'app' }],
        volumes: [{ name: 'd', persistentVolumeClaim: { claimName: `by-${i}` } }],
      },
      status: {
        phase: 'Running',
        conditions: [
          { type: 'PodScheduled', status: 'True', lastTransitionTime: 'NOW-3d' },
          { type: 'Ready', status: 'True', lastTransitionTime: 'NOW-3d' },
        ],
        containerStatuses: [{ name: 'app', ready: true, state: { running: { startedAt: 'NOW-3d' } } }],
      },
    },
  ];
}
