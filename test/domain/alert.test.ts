import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { alertEntry, clusterOf, deliveryKeyOf, MOST_LABELS, readAlert, subjectOf } from '../../src/domain/alert.ts';
import { describeScope } from '../../src/domain/scope.ts';

const written = {
  status: 'firing',
  labels: { alertname: 'KubePodNotReady', namespace: 'shop', pod: 'db-0', severity: 'warning' },
  annotations: { description: 'Pod shop/db-0 has been in a non-ready state for longer than 15 minutes.' },
  startsAt: '2026-11-30T13:00:00.123+01:00',
  endsAt: '0001-01-01T00:00:00Z',
  generatorURL: 'http://prometheus/graph',
  fingerprint: 'c6eadffa33fcdf37',
};

describe('an alert of a group', () => {
  it('is read, its times in UTC', () => {
    expect(readAlert(written)).toMatchObject({
      kind: 'alert',
      alert: { name: 'KubePodNotReady', severity: 'warning', startsAt: '2026-11-30T12:00:00.123Z', endsAt: null },
    });
  });

  it('without a fingerprint gets one from its labels, whatever their order', () => {
    const { fingerprint: _, ...bare } = written;
    const turned = { ...bare, labels: Object.fromEntries(Object.entries(bare.labels).toReversed()) };
    expect(readAlert(bare)).toEqual(readAlert(turned));
  });

  it.each([
    ['no object', 'x', /alert/],
    ['no labels', { ...written, labels: undefined }, /labels/],
    ['a label that is no text', { ...written, labels: { ...written.labels, n: 1 } }, /labels.n/],
    ['no alertname', { ...written, labels: { namespace: 'shop' } }, /alertname/],
    [
      '10,000 labels',
      { ...written, labels: Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`l${i}`, 'x'])) },
      /10000 labels/,
    ],
    ['NUL in a label', { ...written, labels: { ...written.labels, pod: 'db\0' } }, /characters/],
    ['half a surrogate pair in a label', { ...written, labels: { ...written.labels, pod: '\ud800' } }, /characters/],
    ['NUL in the name of a label', { ...written, labels: { ...written.labels, 'a\0': 'x' } }, /characters/],
    ['a label of a megabyte', { ...written, labels: { ...written.labels, pod: 'x'.repeat(1_000_000) } }, /too long/],
    ['a fingerprint with NUL', { ...written, fingerprint: 'a\0' }, /fingerprint/],
    ['no time', { ...written, startsAt: 'yesterday' }, /startsAt/],
    ['a state that there is not', { ...written, status: 'pending' }, /status/],
  ])('with %s is kept as not understood, with the reason', (_, value, reason) => {
    const entry = readAlert(value);
    expect(entry.kind).toBe('unclear');
    expect(entry.kind === 'unclear' && entry.says).toMatch(reason);
    expect(JSON.stringify(entry).length).toBeLessThan(2000);
  });

  it('loses NUL and half pairs from its annotations, which only people read', () => {
    const entry = readAlert({ ...written, annotations: { summary: 'a\0b\ud800', runbook: 7 } });
    expect(entry).toMatchObject({ kind: 'alert', alert: { annotations: { summary: 'a\uFFFDb\uFFFD' } } });
  });

  it('may be any JSON: it is read or kept, storable and short either way', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.jsonValue(),
          fc.record({
            ...Object.fromEntries(
              Object.keys(written).map((key) => [
                key,
                fc.oneof(fc.jsonValue(), fc.constant(Reflect.get(written, key))),
              ]),
            ),
          }),
        ),
        (value) => {
          const entry = alertEntry.parse(readAlert(value));
          const text = JSON.stringify(entry);
          expect(text.isWellFormed() && !text.includes('\\u0000')).toBe(true);
          if (entry.kind === 'alert') expect(Object.keys(entry.alert.labels).length).toBeLessThanOrEqual(MOST_LABELS);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('a delivery', () => {
  it('is the same one whatever the order of its alerts, and another one when an alert has changed', () => {
    const other = { ...written, fingerprint: 'b' };
    const key = deliveryKeyOf([readAlert(written), readAlert(other)]);
    expect(deliveryKeyOf([readAlert(other), readAlert(written)])).toBe(key);
    expect(deliveryKeyOf([readAlert(written), readAlert({ ...other, status: 'resolved' })])).not.toBe(key);
    expect(deliveryKeyOf([readAlert(written), readAlert({ ...other, startsAt: '2026-11-30T14:00:00Z' })])).not.toBe(
      key,
    );
  });
});

/** What an exporter adds of its own, as kube-state-metrics scraped by kube-prometheus has it. */
const exporter = { job: 'kube-state-metrics', container: 'kube-state-metrics', instance: '10.0.0.7:8443' };
const own = { ...exporter, pod: 'kube-state-metrics-5f-x', namespace: 'monitoring' };

describe('the subject of an alert', () => {
  it.each([
    [
      'KubePersistentVolumeFillingUp',
      { namespace: 'shop', persistentvolumeclaim: 'data-db-0', node: 'n1', job: 'kubelet' },
      'PersistentVolumeClaim shop/data-db-0',
    ],
    [
      'KubePersistentVolumeInodesFillingUp',
      { namespace: 'shop', persistentvolumeclaim: 'data-db-0' },
      'PersistentVolumeClaim shop/data-db-0',
    ],
    ['KubePersistentVolumeErrors', { ...own, persistentvolume: 'pvc-1', phase: 'Failed' }, 'PersistentVolume pvc-1'],
    ['KubePodNotReady', { namespace: 'shop', pod: 'db-0' }, 'Pod shop/db-0'],
    [
      'KubeContainerWaiting',
      { ...exporter, container: 'app', namespace: 'shop', pod: 'db-0', reason: 'ContainerCreating' },
      'Pod shop/db-0',
    ],
    ['KubePodCrashLooping', { namespace: 'shop', pod: 'db-0', container: 'app' }, 'Pod shop/db-0'],
    [
      'KubeStatefulSetReplicasMismatch',
      { ...exporter, namespace: 'shop', statefulset: 'db', pod: 'kube-state-metrics-5f-x' },
      'StatefulSet shop/db',
    ],
    ['KubeDeploymentRolloutStuck', { ...exporter, namespace: 'shop', deployment: 'web' }, 'Deployment shop/web'],
    ['KubeNodeNotReady', { ...own, node: 'n1', condition: 'Ready', status: 'true' }, 'Node n1'],
    ['KubeNodeUnreachable', { ...own, node: 'n1' }, 'Node n1'],
    ['StuckAttachment', { volumeattachment: 'csi-1', node: 'n1' }, 'VolumeAttachment csi-1'],
    ['VolumeOnDeadNode', { volumename: 'pvc-1', node: 'n1' }, 'PersistentVolume pvc-1'],
    [
      'OurRule',
      { exported_namespace: 'shop', exported_pod: 'db-0', namespace: 'monitoring', pod: 'exporter-1' },
      'Pod shop/db-0',
    ],
    ['OurRule', { ...own, statefulset: 'db', exported_namespace: 'shop' }, 'StatefulSet shop/db'],
    ['SnapshotFailed', { namespace: 'shop', volumesnapshot: 'daily' }, 'VolumeSnapshot shop/daily'],
    ['StorageQuotaNearlyUsed', { namespace: 'shop' }, 'Namespace shop'],
  ])('%s is read from its labels', (name, labels, expected) => {
    const subject = subjectOf({ name, labels: { alertname: name, ...labels } });
    expect(subject.kind === 'subject' ? describeScope(subject.scope) : subject).toBe(expected);
  });

  it.each([
    ['Watchdog', {}, 'notStorage'],
    ['KubeJobFailed', { namespace: 'shop', job_name: 'backup' }, 'notStorage'],
    ['KubeHpaMaxedOut', { namespace: 'shop', horizontalpodautoscaler: 'web' }, 'notStorage'],
    ['KubeDaemonSetRolloutStuck', { ...exporter, namespace: 'shop', daemonset: 'csi-node' }, 'notStorage'],
    ['TargetDown', { namespace: 'shop', job: 'web' }, 'notStorage'],
    ['KubePodNotReady', { namespace: 'shop' }, 'unclear'],
    ['KubePersistentVolumeFillingUp', { persistentvolumeclaim: 'data-db-0' }, 'unclear'],
    ['VolumeTrouble', {}, 'unclear'],
    ['KubePodNotReady', { namespace: 'shop', pod: '../../nodes' }, 'unclear'],
    ['KubePodNotReady', { namespace: '..', pod: 'db-0' }, 'unclear'],
  ])('%s with what it tells is %s', (name, labels, kind) => {
    expect(subjectOf({ name, labels }).kind).toBe(kind);
  });
});

describe('the cluster of an alert', () => {
  it.each([
    ['the one of the URL, whatever the label says', { cluster: 'b' }, 'a', ['a', 'b'], 'a'],
    ['the one of the label', { cluster: 'b' }, null, ['a', 'b'], 'b'],
    ['the only one', {}, null, ['a'], 'a'],
    ['never guessed among several', {}, null, ['a', 'b'], undefined],
    ['not one that is not known', { cluster: 'c' }, null, ['a', 'b'], undefined],
  ])('is %s', (_, labels, ofUrl, clusters, expected) => {
    const found = clusterOf(labels, ofUrl, clusters);
    expect(found.kind === 'cluster' ? found.name : undefined).toBe(expected);
  });
});
