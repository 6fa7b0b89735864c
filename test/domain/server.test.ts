import { describe, expect, it } from 'vitest';
import { hasReadyEndpoint, serviceOf, workloadBehind } from '../../src/domain/server.ts';
import { toCluster } from '../support/fixture.ts';
import { metaOf, ownedBy, type Raw, rawDeployment, rawPod, rawReplicaSet } from '../support/objects.ts';

function rawService(name: string, namespace: string, spec: Raw = {}): Raw {
  const selector = { app: name };
  return { apiVersion: 'v1', kind: 'Service', metadata: metaOf(name, namespace), spec: { selector, ...spec } };
}

function rawSlice(service: string, namespace: string, ready: readonly boolean[]): Raw {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: metaOf(`${service}-abc`, namespace, { labels: { 'kubernetes.io/service-name': service } }),
    addressType: 'IPv4',
    endpoints: ready.map((one, i) => ({ addresses: [`10.1.0.${i}`], conditions: { ready: one } })),
  };
}

function server(name: string, isReady: boolean): Raw {
  return rawPod(name, 'files', [], {
    node: 'n1',
    more: { labels: { app: 'nfs' }, ...ownedBy('ReplicaSet', 'nfs-1', 'files') },
    status: { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  });
}

describe('a server is a Service of this cluster when its name or address is that of one', () => {
  const cluster = toCluster([
    rawService('nfs', 'files', { clusterIP: '10.96.7.7' }),
    rawService('head', 'files', { clusterIP: 'None' }),
  ]);

  it.each([
    ['nfs.files.svc.cluster.local', 'nfs'],
    ['nfs.files.svc.cluster.local.', 'nfs'],
    ['nfs.files.svc', 'nfs'],
    ['nfs.files', 'nfs'],
    ['NFS.files.svc.corp.example', 'nfs'],
    ['10.96.7.7', 'nfs'],
    ['head.files.svc', 'head'],
    ['nfs', undefined],
    ['nfs.other.svc', undefined],
    ['nfs.files.example.com', undefined],
    ['None', undefined],
    ['filer.example.com', undefined],
  ])('%s', (name, service) => {
    expect(serviceOf(name, cluster)?.name).toBe(service);
  });
});

describe('whether anything ready is behind a Service', () => {
  it.each([
    ['a ready endpoint', [rawSlice('nfs', 'files', [false, true])], {}, true],
    ['endpoints that are not ready', [rawSlice('nfs', 'files', [false])], {}, false],
    ['no endpoint and no pod', [], {}, false],
    ['a ready pod whose slice was not read', [server('nfs-1-a', true)], {}, true],
    ['a pod that is not ready', [server('nfs-1-a', false)], {}, false],
    ['another Service of that name', [rawSlice('nfs', 'other', [true])], {}, false],
    ['no selector and no slice', [], { selector: {} }, undefined],
  ])('%s', (_, objects: readonly Raw[], spec, expected) => {
    const cluster = toCluster([rawService('nfs', 'files', spec), ...objects]);
    const service = serviceOf('nfs.files.svc', cluster);
    expect(service && hasReadyEndpoint(service, cluster)).toBe(expected);
  });
});

describe('the workload behind a Service', () => {
  const deployment = rawDeployment('nfs', 'files', { selector: { matchLabels: { app: 'nfs' } } });

  it.each([
    ['is that of its pods', [deployment, rawReplicaSet('nfs-1', 'files', 'nfs'), server('nfs-1-a', false)]],
    ['is found by the selectors when no pod is left', [deployment]],
  ])('%s', (_, objects: readonly Raw[]) => {
    const cluster = toCluster([rawService('nfs', 'files'), ...objects]);
    const service = serviceOf('nfs.files.svc', cluster);
    expect(service && workloadBehind(service, cluster)).toMatchObject({ kind: 'Deployment', name: 'nfs' });
  });
});
