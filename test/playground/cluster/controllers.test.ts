import { describe, expect, it } from 'vitest';
import { fenceposts } from '../../../src/playground/cluster/controllers/deployment.ts';
import { attachmentName, conditionOf } from '../../../src/playground/cluster/controllers/lookup.ts';
import type { Kinds } from '../../../src/playground/cluster/kinds.ts';
import { oneContainer } from '../../../src/playground/cluster/scenarios/world.ts';
import { Play } from './play.ts';

const MINUTE = 60_000;

/** A pod `old` with claim `data` that runs on n1, and then n1 falls silent. */
function deadNode(settings: Parameters<typeof Play.healthy>[0] = {}): Play {
  const play = Play.healthy(settings);
  play.claim('data');
  play.pod('old', 'data', { nodeSelector: { 'kubernetes.io/hostname': 'n1' } });
  play.run(4000);
  expect(play.ready()).toEqual(['old']);
  play.cluster.silence('n1');
  return play;
}

function otherNode(node: string): Readonly<Record<string, unknown>> {
  return { nodeSelector: { 'kubernetes.io/hostname': node } };
}

describe('the way of a volume from claim to pod', () => {
  it('binds on the node that the scheduler chose, attaches, and tells each step', () => {
    const play = Play.healthy();
    play.claim('data');
    play.cluster.settle();
    expect(play.messages('WaitForFirstConsumer')).toEqual(['waiting for first consumer to be created before binding']);
    play.pod('app', 'data', otherNode('n2'));
    play.run(4000);
    const claim = play.store.need('persistentvolumeclaims', 'shop', 'data');
    expect(claim.status).toMatchObject({ phase: 'Bound', capacity: { storage: '1Gi' } });
    expect(claim.metadata.annotations).toMatchObject({
      'pv.kubernetes.io/bind-completed': 'yes',
      'volume.kubernetes.io/selected-node': 'n2',
      'volume.kubernetes.io/storage-provisioner': 'disk.csi.example.com',
    });
    const volume = play.volumeOf('data');
    expect(volume.metadata.name).toBe(`pvc-${claim.metadata.uid}`);
    expect(volume.metadata.finalizers).toEqual([
      'external-provisioner.volume.kubernetes.io/finalizer',
      'kubernetes.io/pv-protection',
      'external-attacher/disk-csi-example-com',
    ]);
    const handle = volume.spec.csi?.volumeHandle ?? '';
    const [attachment] = play.attachments('n2');
    expect(attachment?.metadata.name).toBe(attachmentName(handle, 'disk.csi.example.com', 'n2'));
    expect(attachment?.metadata.annotations).toEqual({ 'csi.alpha.kubernetes.io/node-id': 'i-n2' });
    expect(attachment?.status?.attached).toBe(true);
    const unique = `kubernetes.io/csi/disk.csi.example.com^${handle}`;
    expect(play.store.need('nodes', undefined, 'n2').status).toMatchObject({
      volumesInUse: [unique],
      volumesAttached: [{ name: unique }],
    });
    expect(play.ready()).toEqual(['app']);
    expect(play.messages('SuccessfulAttachVolume')).toEqual([
      `AttachVolume.Attach succeeded for volume "${volume.metadata.name}" `,
    ]);
  });

  it('deletes everything in order when pod and claim go: detach before DeleteVolume, no object left', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data');
    play.run(4000);
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.store.remove('pods', 'shop', 'app');
    play.run(20_000);
    expect(play.store.list('persistentvolumes')).toEqual([]);
    expect(play.attachments()).toEqual([]);
    expect(play.cluster.backend.volumes()).toEqual([]);
    expect(play.cluster.backend.calls().map((call) => call.call)).toEqual([
      'CreateVolume',
      'ControllerPublishVolume',
      'ControllerUnpublishVolume',
      'DeleteVolume',
    ]);
  });

  it('never provisions a claim whose pod bypassed the scheduler', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data', { nodeName: 'n1' });
    play.run(MINUTE);
    expect(play.store.need('persistentvolumeclaims', 'shop', 'data').status?.phase).toBe('Pending');
    expect(play.messages('FailedMount')[0]).toBe(
      'Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: error processing PVC shop/data: PVC is not bound',
    );
  });

  it('lets one pod of a ReadWriteOncePod claim wait, unscheduled', () => {
    const play = Play.healthy();
    play.claim('data', 'shop', { accessModes: ['ReadWriteOncePod'] });
    play.pod('one', 'data');
    play.run(4000);
    play.pod('two', 'data');
    play.run(4000);
    expect(conditionOf(play.getPod('two')?.status?.conditions, 'PodScheduled')?.message).toContain(
      '3 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
    );
  });

  it('loses a claim whose volume object is forced away, and gives it back when the object is made again', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data');
    play.run(4000);
    const { metadata, spec } = play.volumeOf('data');
    play.store.remove('persistentvolumes', undefined, metadata.name);
    play.store.mutate('persistentvolumes', undefined, metadata.name, (draft) => {
      draft.metadata.finalizers = [];
    });
    play.run(2000);
    expect(play.store.need('persistentvolumeclaims', 'shop', 'data').status?.phase).toBe('Lost');
    expect(play.messages('ClaimLost')).toEqual([
      'Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    ]);
    play.store.remove('pods', 'shop', 'app');
    play.run(4000);
    expect(play.attachments()[0]?.status?.detachError?.message).toBe(`persistentvolume "${metadata.name}" not found`);
    play.store.create('persistentvolumes', {
      metadata: { name: metadata.name },
      spec: { ...spec, persistentVolumeReclaimPolicy: 'Retain' },
    });
    play.run(MINUTE);
    expect(play.store.need('persistentvolumeclaims', 'shop', 'data').status?.phase).toBe('Bound');
    expect(play.attachments()).toEqual([]);
  });
});

describe('multi-attach', () => {
  it.each([
    ['v1.37.2', 'Waiting for detach for volume'],
    ['v1.36.3', 'Multi-Attach error for volume'],
  ])('names the pod that uses the volume on a live node (%s)', (version, prefix) => {
    const play = Play.healthy({ version });
    play.claim('data');
    play.pod('one', 'data', otherNode('n1'));
    play.run(4000);
    play.pod('two', 'data', otherNode('n2'));
    play.pod('same-node', 'data', otherNode('n1'));
    play.run(MINUTE);
    expect(play.ready()).toEqual(['one', 'same-node']);
    const [message, ...more] = play.messages('FailedAttachVolume', 'two');
    expect(more).toEqual([]);
    expect(message).toContain(
      `${prefix} "${play.volumeOf('data').metadata.name}" Volume is already used by pod(s) one`,
    );
    const event = play.store.list('events').find((entry) => entry.reason === 'FailedAttachVolume');
    expect(event?.count).toBe(1);
  });

  it.each([
    [
      'v1.37.2',
      'Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node',
    ],
    ['v1.36.3', "Volume is already exclusively attached to one node and can't be attached to another"],
  ])('says "exclusively attached" when no pod is left on the other node (%s)', (version, text) => {
    const play = deadNode({ version });
    play.run(MINUTE);
    play.store.remove('pods', 'shop', 'old', { gracePeriodSeconds: 0 });
    play.pod('new', 'data');
    play.run(10_000);
    expect(play.messages('FailedAttachVolume', 'new')[0]).toContain(text);
  });

  it('counts the pods of other namespaces that use the same backend volume', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('one', 'data', otherNode('n1'));
    play.run(4000);
    const { spec } = play.volumeOf('data');
    play.store.create('persistentvolumes', {
      metadata: { name: 'twin' },
      spec: { ...spec, claimRef: { namespace: 'other', name: 'twin' }, persistentVolumeReclaimPolicy: 'Retain' },
    });
    play.claim('twin', 'other');
    play.pod('two', 'twin', otherNode('n2'), 'other');
    play.run(10_000);
    expect(play.messages('FailedAttachVolume', 'two')).toEqual([
      'Waiting for detach for volume "twin" Volume is already used by 1 pod(s) in different namespaces',
    ]);
  });

  it('detaches by force six minutes after the old pod object is gone, and not a second earlier', () => {
    const play = deadNode();
    play.run(MINUTE);
    play.store.remove('pods', 'shop', 'old', { gracePeriodSeconds: 0 });
    play.pod('new', 'data');
    play.run(6 * MINUTE - 2000);
    expect(play.attachments('n1')[0]?.metadata.deletionTimestamp).toBeUndefined();
    expect(play.ready()).toEqual([]);
    play.run(10_000);
    expect(play.attachments('n1')).toEqual([]);
    expect(play.ready()).toEqual(['new']);
  });

  it('never detaches by force when that is switched off; a deleted attachment then heals', () => {
    const play = deadNode({ disableForceDetach: true });
    play.run(MINUTE);
    play.store.remove('pods', 'shop', 'old', { gracePeriodSeconds: 0 });
    play.pod('new', 'data');
    play.run(30 * MINUTE, 10_000);
    const [attachment] = play.attachments('n1');
    expect(attachment).toBeDefined();
    play.store.remove('volumeattachments', undefined, attachment?.metadata.name ?? '');
    play.run(6000);
    expect(play.ready()).toEqual(['new']);
  });

  it('keeps the timer from starting while the old pod object exists', () => {
    const play = deadNode();
    play.pod('new', 'data', otherNode('n2'));
    play.run(20 * MINUTE, 5000);
    expect(play.getPod('old')?.metadata.deletionTimestamp).toBeDefined();
    expect(play.messages('FailedAttachVolume', 'new')[0]).toContain('Volume is already used by pod(s) old');
    expect(play.attachments('n1')).toHaveLength(1);
  });

  it('makes a second attachment soon after a failed detach, and the backend alone refuses it', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('one', 'data', otherNode('n1'));
    play.run(4000);
    play.cluster.backend.fail('ControllerUnpublishVolume', 'Internal', 'backend is busy');
    play.store.remove('pods', 'shop', 'one');
    play.pod('two', 'data', otherNode('n2'));
    play.run(4000);
    expect(play.attachments('n1')[0]?.status?.detachError?.message).toBe(
      'rpc error: code = Internal desc = backend is busy',
    );
    expect(play.attachments('n2')[0]?.status?.attachError?.message).toMatch(
      /code = FailedPrecondition .* already attached to node i-n1/,
    );
    expect(play.messages('FailedAttachVolume', 'two')[0]).toContain('AttachVolume.Attach failed for volume');
    play.cluster.backend.heal();
    play.run(5 * MINUTE);
    expect(play.ready()).toEqual(['two']);
  });
});

describe('a node that is lost', () => {
  it('becomes Unknown and tainted 50 s after its last lease, and its pods are evicted 300 s later but stay', () => {
    const play = deadNode();
    play.run(38_000);
    expect(conditionOf(play.store.need('nodes', undefined, 'n1').status?.conditions, 'Ready')?.status).toBe('True');
    play.run(15_000);
    const node = play.store.need('nodes', undefined, 'n1');
    expect(conditionOf(node.status?.conditions, 'Ready')).toMatchObject({
      status: 'Unknown',
      reason: 'NodeStatusUnknown',
    });
    expect(node.spec?.taints?.map((taint) => `${taint.key}:${taint.effect}`)).toEqual([
      'node.kubernetes.io/unreachable:NoSchedule',
      'node.kubernetes.io/unreachable:NoExecute',
    ]);
    expect(play.messages('NodeNotReady', 'old')).toEqual(['Node is not ready']);
    play.run(5 * MINUTE + 5000);
    const pod = play.getPod('old');
    expect(pod?.metadata.deletionTimestamp).toBeDefined();
    expect(pod?.status?.phase).toBe('Running');
    expect(conditionOf(pod?.status?.conditions, 'DisruptionTarget')?.reason).toBe('DeletionByTaintManager');
  });

  it('gives its volumes up at once under the out-of-service taint', () => {
    const play = deadNode();
    play.run(7 * MINUTE);
    play.pod('new', 'data', otherNode('n2'));
    play.taint('n1');
    play.run(24_000);
    expect(play.getPod('old')).toBeUndefined();
    expect(play.attachments('n1')).toEqual([]);
    expect(play.ready()).toEqual(['new']);
  });

  it('loses its pods to the garbage collector a quarantine after the Node object is deleted, and detaches 6 min later', () => {
    const play = deadNode();
    play.run(MINUTE);
    play.store.remove('nodes', undefined, 'n1');
    play.pod('new', 'data', otherNode('n2'));
    play.run(38_000);
    expect(play.getPod('old')).toBeDefined();
    play.run(24_000);
    expect(play.getPod('old')).toBeUndefined();
    expect(play.store.get('csinodes', undefined, 'n1')).toBeUndefined();
    expect(play.attachments('n1')).toHaveLength(1);
    play.run(6 * MINUTE + 5000);
    expect(play.ready()).toEqual(['new']);
    expect(play.cluster.backend.calls('ControllerUnpublishVolume').map((call) => call.node)).toEqual(['i-n1']);
  });

  it('finishes its deleted pods itself when it comes back, and the volume moves without force', () => {
    const play = deadNode();
    play.run(7 * MINUTE);
    play.pod('new', 'data', otherNode('n2'));
    play.run(4000);
    play.cluster.revive('n1');
    play.run(10_000);
    expect(play.getPod('old')).toBeUndefined();
    expect(play.store.need('nodes', undefined, 'n1').spec?.taints).toBeUndefined();
    expect(play.ready()).toEqual(['new']);
  });
});

describe('deletion of claims and volumes', () => {
  it.each([
    ['a running pod', 'registry.example.com/app:1', 'Running'],
    ['a completed pod', 'sim/exit:0', 'Succeeded'],
    ['a failed pod', 'sim/exit:1', 'Failed'],
  ])('is held by %s until the pod object is gone', (_what, image, phase) => {
    const play = Play.healthy();
    play.claim('data');
    play.store.create('pods', {
      metadata: { name: 'app', namespace: 'shop' },
      spec: { ...oneContainer(image, 'data'), restartPolicy: 'Never' },
    });
    play.run(4000);
    expect(play.getPod('app')?.status?.phase).toBe(phase);
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.run(10 * MINUTE, 10_000);
    expect(play.store.get('persistentvolumeclaims', 'shop', 'data')).toBeDefined();
    play.store.remove('pods', 'shop', 'app');
    play.run(4000);
    expect(play.store.get('persistentvolumeclaims', 'shop', 'data')).toBeUndefined();
  });

  it('is not held by an unscheduled pod, which is then told that the claim is missing', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data', { nodeSelector: { nowhere: 'true' } });
    play.run(4000);
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.run(2000);
    expect(play.store.get('persistentvolumeclaims', 'shop', 'data')).toBeUndefined();
    expect(conditionOf(play.getPod('app')?.status?.conditions, 'PodScheduled')?.message).toBe(
      '0/3 nodes are available: persistentvolumeclaim "data" not found. not found',
    );
  });

  it('puts the protection of a claim back that is not being deleted', () => {
    const play = Play.healthy();
    play.claim('data');
    play.store.mutate('persistentvolumeclaims', 'shop', 'data', (draft) => {
      draft.metadata.finalizers = [];
    });
    play.cluster.settle();
    expect(play.store.need('persistentvolumeclaims', 'shop', 'data').metadata.finalizers).toEqual([
      'kubernetes.io/pvc-protection',
    ]);
  });

  it.each([
    ['with HonorPVReclaimPolicy DeleteVolume runs', true, 'v5.3.0', 1],
    ['without it the backend volume is leaked silently', false, 'v4.0.1', 0],
  ])('volume first, claim second: %s', (_what, honorReclaimPolicy, provisionerVersion, deletions) => {
    const play = Play.healthy({ honorReclaimPolicy, provisionerVersion });
    play.claim('data');
    play.pod('app', 'data');
    play.run(4000);
    const { name } = play.volumeOf('data').metadata;
    play.store.remove('persistentvolumes', undefined, name);
    play.run(MINUTE);
    expect(play.store.need('persistentvolumes', undefined, name).status?.phase).toBe('Bound');
    expect(play.ready()).toEqual(['app']);
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.store.remove('pods', 'shop', 'app');
    play.run(MINUTE);
    expect(play.store.get('persistentvolumes', undefined, name)).toBeUndefined();
    expect(play.cluster.backend.calls('DeleteVolume')).toHaveLength(deletions);
    expect(play.cluster.backend.volumes()).toHaveLength(1 - deletions);
    expect(play.messages('VolumeFailedDelete')).toEqual([]);
  });

  it('drops the provisioner’s finalizer when the policy becomes Retain, and keeps the backend volume', () => {
    const play = Play.healthy();
    play.claim('data');
    play.pod('app', 'data');
    play.run(4000);
    const { name } = play.volumeOf('data').metadata;
    play.retain(name);
    play.cluster.settle();
    expect(play.store.need('persistentvolumes', undefined, name).metadata.finalizers).not.toContain(
      'external-provisioner.volume.kubernetes.io/finalizer',
    );
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.store.remove('pods', 'shop', 'app');
    play.run(MINUTE);
    expect(play.store.need('persistentvolumes', undefined, name).status?.phase).toBe('Released');
    expect(play.cluster.backend.calls('DeleteVolume')).toEqual([]);
  });

  it.each([
    ['v5.3.0', 'VolumeFailedDelete', 'is still attached to node n1'],
    ['v6.4.0', 'VolumeDelete', 'is still attached to node n1, waiting for detach'],
  ])('waits with DeleteVolume while an attachment is left (%s)', (provisionerVersion, reason, text) => {
    const play = deadNode({ provisionerVersion, disableForceDetach: true });
    play.run(MINUTE);
    const { name } = play.volumeOf('data').metadata;
    play.store.remove('pods', 'shop', 'old', { gracePeriodSeconds: 0 });
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.run(MINUTE);
    expect(play.messages(reason, name)).toEqual([`persistentvolume ${name} ${text}`]);
    expect(play.cluster.backend.calls('DeleteVolume')).toEqual([]);
  });

  it('refuses to delete a published volume in the backend, and to publish it twice', () => {
    const play = Play.healthy();
    const { backend } = play.cluster;
    const { handle } = backend.create({ name: 'v', driver: 'd', clusterId: 'c', zone: 'z1', sizeBytes: 1 });
    backend.publish(handle, 'i-n1');
    backend.publish(handle, 'i-n1');
    expect(() => backend.publish(handle, 'i-n2')).toThrow(/code = FailedPrecondition/);
    expect(() => backend.delete(handle)).toThrow(/still attached to node i-n1/);
    backend.unpublish(handle, 'i-n1');
    backend.delete(handle);
    expect(backend.volumes()).toEqual([]);
  });
});

describe('a StatefulSet', () => {
  function withSet(podManagementPolicy: string, affinity = 'n1'): Play {
    const play = Play.healthy();
    play.store.create('statefulsets', {
      metadata: { name: 'db', namespace: 'shop' },
      spec: {
        replicas: 3,
        podManagementPolicy,
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: {
          metadata: { labels: { app: 'db' } },
          spec: { containers: [{ name: 'app', image: 'sim/pause:1' }], nodeSelector: { role: 'db' } },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    });
    label(play, affinity, { role: 'db' });
    play.run(20_000);
    expect(play.ready()).toEqual(['db-0', 'db-1', 'db-2']);
    return play;
  }

  function label(play: Play, node: string, labels: Readonly<Record<string, string>>): void {
    play.store.mutate('nodes', undefined, node, (draft) => {
      draft.metadata.labels = { ...draft.metadata.labels, ...labels };
    });
  }

  function loseNode(play: Play): void {
    play.cluster.silence('n1');
    label(play, 'n2', { role: 'db' });
    play.run(8 * MINUTE, 5000);
  }

  it('makes no replacement while the old pod objects exist, and so no Multi-Attach event', () => {
    const play = withSet('OrderedReady');
    loseNode(play);
    const pods = play.store.list('pods', 'shop');
    expect(
      pods.map((pod) => [pod.metadata.name, pod.spec.nodeName, pod.metadata.deletionTimestamp !== undefined]),
    ).toEqual([
      ['db-0', 'n1', true],
      ['db-1', 'n1', true],
      ['db-2', 'n1', true],
    ]);
    expect(play.messages('FailedAttachVolume')).toEqual([]);
  });

  it.each([
    ['OrderedReady', ['db-0']],
    ['Parallel', ['db-0', 'db-1', 'db-2']],
  ])('under %s makes %j again after a force deletion, waiting for the old node', (policy, names) => {
    const play = withSet(policy);
    loseNode(play);
    for (const pod of play.store.list('pods', 'shop'))
      play.store.remove('pods', 'shop', pod.metadata.name, { gracePeriodSeconds: 0 });
    play.run(10_000);
    const pods = play.store.list('pods', 'shop');
    expect(pods.map((pod) => [pod.metadata.name, pod.spec.nodeName, pod.status?.phase])).toEqual(
      names.map((name) => [name, 'n2', 'Pending']),
    );
    expect(play.messages('FailedAttachVolume', 'db-0')[0]).toContain('exclusively attached');
    play.run(15 * MINUTE, 5000);
    expect(play.ready()).toEqual(['db-0', 'db-1', 'db-2']);
  });

  it('does not make a pod while its claim is being deleted', () => {
    const play = withSet('OrderedReady');
    play.store.mutate('persistentvolumeclaims', 'shop', 'data-db-0', (draft) => {
      draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), 'example.com/backup'];
    });
    play.store.remove('persistentvolumeclaims', 'shop', 'data-db-0');
    play.store.remove('pods', 'shop', 'db-0');
    play.run(MINUTE);
    expect(play.getPod('db-0')).toBeUndefined();
    expect(play.messages('FailedCreate', 'db')).toEqual([
      'Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted',
    ]);
    play.store.mutate('persistentvolumeclaims', 'shop', 'data-db-0', (draft) => {
      draft.metadata.finalizers = [];
    });
    play.run(MINUTE);
    expect(play.ready()).toEqual(['db-0', 'db-1', 'db-2']);
  });

  it('scales down from the highest ordinal, keeps the claims, and rolls a new template out one by one', () => {
    const play = withSet('OrderedReady');
    play.store.mutate('statefulsets', 'shop', 'db', (draft) => {
      draft.spec.replicas = 1;
    });
    play.run(20_000);
    expect(play.ready()).toEqual(['db-0']);
    expect(play.store.list('persistentvolumeclaims', 'shop')).toHaveLength(3);
    play.store.mutate('statefulsets', 'shop', 'db', (draft) => {
      for (const container of draft.spec.template.spec.containers) container.image = 'sim/pause:2';
    });
    play.run(20_000);
    expect(play.getPod('db-0')?.spec.containers[0]?.image).toBe('sim/pause:2');
    expect(play.ready()).toEqual(['db-0']);
  });
});

describe('the claim retention policy of a StatefulSet', () => {
  it.each([
    [
      'whenScaled Retain keeps the claim of an ordinal that is scaled away',
      { whenScaled: 'Retain' },
      'scale',
      ['data-db-0', 'data-db-1'],
    ],
    ['whenScaled Delete deletes it', { whenScaled: 'Delete' }, 'scale', ['data-db-0']],
    [
      'whenScaled set back to Retain in time keeps it',
      { whenScaled: 'Delete', whenDeleted: 'Delete' },
      'retain',
      ['data-db-0', 'data-db-1'],
    ],
    ['whenDeleted Delete deletes all with the set', { whenDeleted: 'Delete' }, 'delete', []],
    ['whenDeleted Retain keeps all', { whenDeleted: 'Retain' }, 'delete', ['data-db-0', 'data-db-1']],
  ])('%s', (_what, persistentVolumeClaimRetentionPolicy, act, left) => {
    const play = Play.healthy();
    play.store.create('statefulsets', {
      metadata: { name: 'db', namespace: 'shop' },
      spec: {
        replicas: 2,
        podManagementPolicy: 'Parallel',
        persistentVolumeClaimRetentionPolicy,
        selector: { matchLabels: { app: 'db' } },
        template: {
          metadata: { labels: { app: 'db' } },
          spec: { containers: [{ name: 'app', image: 'sim/pause:1' }] },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
          },
        ],
      },
    });
    play.run(10_000);
    expect(play.ready()).toEqual(['db-0', 'db-1']);
    if (act === 'delete') play.store.remove('statefulsets', 'shop', 'db');
    else {
      play.store.mutate('statefulsets', 'shop', 'db', (draft) => {
        if (act === 'retain')
          draft.spec.persistentVolumeClaimRetentionPolicy = { whenDeleted: 'Retain', whenScaled: 'Retain' };
        draft.spec.replicas = 1;
      });
    }
    play.run(30_000);
    expect(play.store.list('persistentvolumeclaims', 'shop').map((claim) => claim.metadata.name)).toEqual(left);
    expect(play.ready()).toEqual(act === 'delete' ? [] : ['db-0']);
  });
});

describe('a Deployment with an exclusive volume', () => {
  function withDeployment(strategy: Readonly<Record<string, unknown>>): Play {
    const play = Play.healthy();
    play.claim('data');
    play.store.create('deployments', {
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        strategy,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            ...oneContainer('sim/pause:1', 'data'),
            affinity: {
              podAntiAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  { labelSelector: { matchLabels: { app: 'web' } }, topologyKey: 'kubernetes.io/hostname' },
                ],
              },
            },
          },
        },
      },
    });
    play.run(10_000);
    expect(play.ready()).toHaveLength(1);
    play.store.mutate('deployments', 'shop', 'web', (draft) => {
      for (const container of draft.spec.template.spec.containers) container.image = 'sim/pause:2';
    });
    return play;
  }

  it('deadlocks in a rolling update, and exceeds its deadline after 600 s', () => {
    const play = withDeployment({ type: 'RollingUpdate' });
    play.run(9 * MINUTE, 5000);
    const progressing = (): readonly (string | undefined)[] => {
      const condition = conditionOf(play.store.need('deployments', 'shop', 'web').status?.conditions, 'Progressing');
      return [condition?.status, condition?.reason];
    };
    expect(progressing()).toEqual(['True', 'ReplicaSetUpdated']);
    play.run(2 * MINUTE, 5000);
    expect(progressing()).toEqual(['False', 'ProgressDeadlineExceeded']);
    expect(play.store.need('deployments', 'shop', 'web').status).toMatchObject({
      replicas: 2,
      updatedReplicas: 1,
      readyReplicas: 1,
      unavailableReplicas: 1,
    });
    expect(play.messages('FailedAttachVolume')[0]).toContain('Volume is already used by pod(s) web-');
  });

  it.each([
    ['Recreate', { type: 'Recreate' }],
    ['maxSurge 0', { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }],
  ])('updates without a deadlock under %s', (_name, strategy) => {
    const play = withDeployment(strategy);
    play.run(MINUTE);
    const pods = play.store.list('pods', 'shop');
    expect(pods.map((pod) => [pod.spec.containers[0]?.image, pod.status?.phase])).toEqual([['sim/pause:2', 'Running']]);
  });

  it.each([
    [1, '25%', '25%', 1, 0],
    [3, '25%', '25%', 1, 0],
    [4, '25%', '25%', 1, 1],
    [10, '25%', '25%', 3, 2],
    [1, 0, '25%', 0, 1],
    [2, 1, 5, 1, 2],
  ])(
    'of %i replicas with maxSurge %s and maxUnavailable %s may surge by %i and miss %i',
    (replicas, maxSurge, maxUnavailable, surge, unavailable) => {
      const play = Play.healthy();
      const deployment: Kinds['deployments'] = play.store.create('deployments', {
        metadata: { name: 'd', namespace: 'shop' },
        spec: {
          replicas,
          strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
          selector: { matchLabels: { app: 'd' } },
          template: { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'sim/pause:1' }] } },
        },
      });
      expect(fenceposts(deployment)).toEqual({ surge, unavailable });
    },
  );
});

describe('garbage collection', () => {
  it('deletes what a deleted owner owned, and empties a deleted namespace before it goes', () => {
    const play = Play.healthy();
    play.claim('data');
    play.store.create('deployments', {
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: oneContainer('sim/pause:1', 'data') },
      },
    });
    play.run(6000);
    expect(play.ready()).toHaveLength(1);
    play.store.remove('deployments', 'shop', 'web', { propagationPolicy: 'Foreground' });
    play.run(10_000);
    expect([
      ...play.store.list('deployments', 'shop'),
      ...play.store.list('replicasets', 'shop'),
      ...play.store.list('pods', 'shop'),
    ]).toEqual([]);
    play.store.remove('namespaces', undefined, 'shop');
    play.run(20_000);
    expect(play.store.get('namespaces', undefined, 'shop')).toBeUndefined();
    expect(play.store.list('persistentvolumes')).toEqual([]);
  });

  it('lets events expire after an hour', () => {
    const play = Play.healthy();
    play.claim('data', 'shop', { storageClassName: 'none' });
    play.cluster.settle();
    play.store.remove('persistentvolumeclaims', 'shop', 'data');
    play.run(2000);
    expect(play.messages('ProvisioningFailed')).toHaveLength(1);
    play.run(62 * MINUTE, 30_000);
    expect(play.messages('ProvisioningFailed')).toEqual([]);
  });
});
