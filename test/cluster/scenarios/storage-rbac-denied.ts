import { minutes } from '../../../src/domain/time.ts';
import { claim, type Manifest, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const storageRbacDenied = defineScenario({
  id: 'storage-rbac-denied',
  kind: 'fault',
  title: 'a class names a Secret, and the role that the provisioner comes with does not let it read Secrets',
  faults: ['storage-rbac-denied'],

  async provoke(bed) {
    await bed.api.delete('ClusterRoleBinding csi-provisioner');
    await bed.apply(
      ...roleOfProvisioner,
      namespace('shop'),
      { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'disk-key' } },
      storageClass('sealed', {
        parameters: {
          'csi.storage.k8s.io/provisioner-secret-name': 'disk-key',
          'csi.storage.k8s.io/provisioner-secret-namespace': 'shop',
        },
      }),
      claim('shop/data', { className: 'sealed' }),
      pod('shop/one', { claims: ['data'] }),
      // The same provisioner makes a volume of a class without a Secret.
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
    );
    await bed.untilReady('pod shop/beside');
    await bed.untilEvent('shop', 'data', /secrets "disk-key" is forbidden/);
    return {
      scope: 'pvc shop/data',
      // A provisioner repeats its word every five minutes at least.
      laterMs: minutes(5),
      found: [
        {
          fault: 'storage-rbac-denied',
          subject: 'ClusterRole external-provisioner-runner',
          involves: ['PersistentVolumeClaim shop/data'],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    await bed.api.patch('ClusterRole external-provisioner-runner', [
      { op: 'add', path: '/rules/-', value: { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list'] } },
    ]);
    await bed.until('the claim to be Bound', async () => {
      const found = await bed.api.get('pvc shop/data');
      return textAt(found, 'status.phase') === 'Bound';
    });
    await bed.untilReady('pod shop/one');
  },
  left: () => [],
});

/** What its own project grants the external-provisioner, where the rule about Secrets is to be added by who needs it. */
const roleOfProvisioner: readonly Manifest[] = [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'external-provisioner-runner' },
    rules: [
      {
        apiGroups: [''],
        resources: ['persistentvolumes'],
        verbs: ['get', 'list', 'watch', 'create', 'patch', 'delete'],
      },
      { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['get', 'list', 'watch', 'update'] },
      { apiGroups: ['storage.k8s.io'], resources: ['storageclasses', 'csinodes'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['events'], verbs: ['list', 'watch', 'create', 'update', 'patch'] },
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs: ['get', 'list', 'watch'] },
    ],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'csi-provisioner-role' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'external-provisioner-runner' },
    subjects: [{ kind: 'ServiceAccount', name: 'csi-provisioner', namespace: 'csi' }],
  },
];
