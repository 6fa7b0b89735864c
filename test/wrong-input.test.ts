import { describe, expect, it } from 'vitest';
import { diagnose } from '../src/diagnose.ts';
import type { Fault } from '../src/domain/fault.ts';
import { faults } from '../src/faults/index.ts';
import { parseObjects } from '../src/kube/parse.ts';
import { remediations } from '../src/remediations/index.ts';
import { findCase } from './support/cases.ts';
import { diagnoseObjects, toCluster } from './support/fixture.ts';
import { faultsMetBy, judgeWrongInput } from './support/wrong-input.ts';

it('no generated cluster makes a rule throw, loop or say a sentence with a hole', () => {
  judgeWrongInput(2000, 11);
}, 300_000);

it('generated clusters are broken in many of the ways that the rules know', () => {
  expect(faultsMetBy(400, 13).size).toBeGreaterThanOrEqual(15);
});

describe('a number that no cluster holds', () => {
  const meta = { namespace: 'shop', uid: 'u', creationTimestamp: '2026-11-30T10:00:00Z' };
  const claim = { metadata: { name: 'data' }, spec: { resources: { requests: { storage: '1Gi' } } } };

  it.each([
    ['two thousand million replicas', { replicas: 2 ** 31 - 1 }],
    ['replicas beyond every integer', { replicas: 1e300 }],
    ['an ordinal that cannot be counted on from', { replicas: 3, ordinals: { start: Number.MAX_SAFE_INTEGER } }],
  ])('%s do not stop a diagnosis', (_what, spec) => {
    for (const podManagementPolicy of ['Parallel', 'OrderedReady']) {
      const set = {
        apiVersion: 'apps/v1',
        kind: 'StatefulSet',
        metadata: { ...meta, name: 'web' },
        spec: { ...spec, podManagementPolicy, volumeClaimTemplates: [claim] },
      };
      const quota = {
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { ...meta, name: 'q' },
        status: { hard: { persistentvolumeclaims: '0' }, used: { persistentvolumeclaims: '0' } },
      };
      const { objects: read } = parseObjects([set, quota]);
      const cluster = toCluster(read.statefulsets.length === 1 ? [set, quota] : [quota]);
      const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
      expect(diagnose(cluster, { kind: 'Cluster' }, { faults, remediations }, cost).unknown).toEqual([]);
    }
  });

  it('a grace that ends after the last day of every calendar is a moment all the same', () => {
    const attachment = {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'VolumeAttachment',
      metadata: {
        name: 'va',
        uid: 'va',
        deletionTimestamp: '2026-11-30T12:00:00Z',
        deletionGracePeriodSeconds: Number.MAX_SAFE_INTEGER,
      },
      spec: { attacher: 'd.csi', nodeName: 'n1', source: { persistentVolumeName: 'gone' } },
    };
    expect(diagnoseObjects([attachment], { kind: 'Cluster' }, { faults, remediations }).unknown).toEqual([]);
  });
});

describe('a check that crashes', () => {
  const { objects } = findCase('024-statefulset-halted-by-dead-node');
  const diagnosis = (all: readonly Fault[]) =>
    diagnoseObjects(objects, { kind: 'Cluster' }, { faults: all, remediations });
  const ids = (all: readonly { readonly fault: string }[]) => all.map(({ fault }) => fault);
  const whole = diagnosis(faults);

  it.each(faults.map((fault) => ({ fault, id: fault.id })))(
    'of $id is its unknown, and the others go on',
    ({ fault }) => {
      const crashing: Fault = {
        ...fault,
        // Whatever it waits for: it is asked.
        onlyWith: () => true,
        // biome-ignore lint/correctness/useYield: it crashes before it yields
        *detect() {
          throw new TypeError('a bug');
        },
      };
      const report = diagnosis(faults.map((one) => (one === fault ? crashing : one)));
      expect(report.unknown).toEqual([{ fault: fault.id, reason: 'its check failed: a bug' }]);
      const causes = ids(whole.findings.filter(({ causedBy }) => causedBy === null));
      for (const id of causes) if (id !== fault.id) expect(ids(report.findings)).toContain(id);
    },
  );

  it('after it found something keeps what it found', () => {
    const [first] = whole.findings;
    const fault = faults.find(({ id }) => id === first?.fault);
    if (!fault) throw new Error('nothing was found');
    const crashing: Fault = {
      ...fault,
      *detect(cluster, scope, causes) {
        yield* fault.detect(cluster, scope, causes);
        throw new TypeError('a bug');
      },
    };
    const report = diagnosis(faults.map((one) => (one === fault ? crashing : one)));
    expect(ids(report.unknown)).toEqual([fault.id]);
    expect(ids(report.findings)).toContain(fault.id);
  });
});
