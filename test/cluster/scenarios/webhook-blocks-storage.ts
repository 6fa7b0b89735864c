import { claim, deployment, namespace, pod, storageClass, textAt } from '../bed/objects.ts';
import { defineScenario } from '../bed/scenario.ts';

export const webhookBlocksStorage = defineScenario({
  id: 'webhook-blocks-storage',
  kind: 'fault',
  title: 'an admission webhook that must answer has nothing behind it, and no volume is attached any more',
  faults: ['webhook-blocks-storage'],

  async provoke(bed) {
    await bed.apply(
      namespace('shop'),
      namespace('policy'),
      storageClass('now', { volumeBindingMode: 'Immediate' }),
      claim('shop/data', { className: 'now' }),
      claim('shop/other'),
      pod('shop/beside', { claims: ['other'] }),
      deployment('policy/guard', { replicas: 0 }),
      {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { namespace: 'policy', name: 'guard' },
        spec: { selector: { app: 'guard' }, ports: [{ port: 443 }] },
      },
    );
    await bed.untilReady('pod shop/beside');
    const volume = await bed.untilVolumeOf('shop/data');
    await bed.apply({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'guard' },
      webhooks: [
        {
          name: 'volumes.guard.example.com',
          clientConfig: { service: { namespace: 'policy', name: 'guard', path: '/' } },
          rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['persistentvolumes'], operations: ['UPDATE'] }],
          failurePolicy: 'Fail',
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          timeoutSeconds: 1,
        },
      ],
    });
    await bed.apply(pod('shop/one', { claims: ['data'] }));
    const attachment = await bed.until('the error of the attachment', async () => {
      const [found] = await bed.attachmentsOf(volume.metadata.name);
      return textAt(found, 'status.attachError.message').includes('webhook') ? found : undefined;
    });
    return {
      scope: 'pod shop/one',
      found: [
        {
          fault: 'webhook-blocks-storage',
          subject: 'ValidatingWebhookConfiguration guard',
          involves: ['Deployment policy/guard', 'Service policy/guard', `VolumeAttachment ${attachment.metadata.name}`],
          affects: ['Pod shop/one'],
        },
      ],
    };
  },

  async recovered(bed) {
    // In this bed nobody serves an answer, so the administrator has taken the whole policy out of service.
    await bed.api.delete('ValidatingWebhookConfiguration guard');
    await bed.untilReady('pod shop/one');
  },
  left: () => [],
});
