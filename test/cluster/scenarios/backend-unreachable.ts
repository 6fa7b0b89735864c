import { claim, deployment, isReady, type Manifest, namespace, pod } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const backendUnreachable = defineScenario({
  id: 'backend-unreachable',
  kind: 'fault',
  title:
    'one machine gets no answer from the storage system and is cordoned; a server in the cluster has nothing behind it',
  faults: ['backend-unreachable'],
  repairs: [{ remediation: 'cordon-node' }],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      deployment('shop/server', {}),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'shop', name: 'server' },
        spec: { selector: { app: 'server' }, ports: [{ port: 2049 }] },
      },
      share,
      claim('shop/share', { className: '', accessModes: ['ReadWriteMany'], spec: { volumeName: 'share' } }),
      pod('shop/reader', { claims: ['share'], on: 'n2' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'], on: 'n1' }),
    );
    await bed.untilReady('pod shop/reader');
    await bed.untilReady('pod shop/beside');
    await bed.api.patch('deployment shop/server', { spec: { replicas: 0 } });
    await bed.until('the server to be gone', async () => (await bed.podsOf('shop', 'server')).length === 0);
    await bed.disks.fail({
      rpc: 'NodeStageVolume',
      node: 'n1',
      code: 'DeadlineExceeded',
      message: 'no answer from the storage network within 20s',
    });
    await bed.apply(claim('shop/data'), pod('shop/one', { claims: ['data'], on: 'n1' }));
    await bed.untilEvent('shop', 'one', /DeadlineExceeded/);
    const node = {
      fault: 'backend-unreachable',
      reason: 'node',
      subject: 'Node n1',
      offers: ['cordon-node'],
      affects: ['Pod shop/one'],
    } as const;
    const server = {
      fault: 'backend-unreachable',
      reason: 'server',
      subject: 'Deployment shop/server',
      involves: ['PersistentVolume share'],
      affects: ['Pod shop/reader'],
    } as const;
    return { scope: 'pod shop/one', found: [node], everywhere: [server, node] };
  },

  async recovered(bed) {
    await bed.disks.heal();
    await bed.untilReady('pod shop/one');
    await bed.api.patch('deployment shop/server', { spec: { replicas: 1 } });
    await bed.untilPod('the server to be Ready', 'shop', 'server', isReady);
  },
});

const share: Manifest = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'share' },
  spec: {
    accessModes: ['ReadWriteMany'],
    capacity: { storage: '1Gi' },
    persistentVolumeReclaimPolicy: 'Retain',
    nfs: { server: 'server.shop.svc.cluster.local', path: '/data' },
  },
};
