import { expect, it } from 'vitest';
import { complaintsOf } from '../../src/domain/complaint.ts';
import { buildScope } from '../../src/domain/scope.ts';
import { minutes } from '../../src/domain/time.ts';
import { toCluster } from '../support/fixture.ts';

const meta = (name: string, namespace: string | undefined, more: object = {}) => ({
  name,
  uid: `uid-${name}`,
  creationTimestamp: 'NOW-30m',
  ...(namespace === undefined ? {} : { namespace }),
  ...more,
});
const claim = (phase: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: meta('c', 'shop', more),
  spec: { resources: { requests: { storage: '1Gi' } } },
  status: { phase, capacity: { storage: '1Gi' } },
});
const event = (message: string, lastTimestamp: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: meta(message, 'shop'),
  involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'c', uid: 'uid-c' },
  type: 'Warning',
  message,
  firstTimestamp: 'NOW-20m',
  lastTimestamp,
  ...more,
});
const attachment = (more: object, status: object) => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: meta('va', undefined, more),
  spec: { attacher: 'd', nodeName: 'n1', source: { persistentVolumeName: 'v' } },
  status,
});
const error = (message: string) => ({ time: 'NOW-1m', message });

it.each<[string, readonly unknown[], readonly string[]]>([
  ['of a claim that waits its warnings', [claim('Pending'), event('no', 'NOW-1m')], ['no']],
  ['nothing of a claim that is bound', [claim('Bound'), event('no', 'NOW-1m')], []],
  ['nothing of a claim that goes', [claim('Pending', { deletionTimestamp: 'NOW-5m' }), event('no', 'NOW-1m')], []],
  ['nothing that is normal', [claim('Pending'), event('fine', 'NOW-1m', { type: 'Normal' })], []],
  [
    'nothing that newer texts have replaced',
    [claim('Pending'), event('old', 'NOW-15m'), event('new', 'NOW-1m'), event('also', 'NOW-9m')],
    ['new', 'also'],
  ],
  [
    'nothing about an earlier object of that name',
    [
      claim('Pending'),
      event('old', 'NOW-1m', {
        involvedObject: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'c', uid: 'other' },
      }),
    ],
    [],
  ],
  ['the error of an attach', [attachment({}, { attached: false, attachError: error('a') })], ['a']],
  ['no error of an attach that came about', [attachment({}, { attached: true, attachError: error('a') })], []],
  [
    'the error of the detach once that is ordered',
    [attachment({ deletionTimestamp: 'NOW-5m' }, { attached: true, attachError: error('a'), detachError: error('d') })],
    ['d'],
  ],
])('what waits complains: %s', (_, objects, messages) => {
  const cluster = toCluster(objects);
  expect(complaintsOf(cluster, buildScope(cluster, { kind: 'Cluster' })).map(({ message }) => message)).toEqual(
    messages,
  );
});

it('a complaint says how long its object has waited', () => {
  const cluster = toCluster([claim('Pending'), event('no', 'NOW-1m')]);
  const [first] = complaintsOf(cluster, buildScope(cluster, { kind: 'Cluster' }));
  expect(first?.waitedMs).toBe(minutes(30));
});
