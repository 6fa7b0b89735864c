import { describe, expect, it } from 'vitest';
import { conditionOf } from '../../../src/playground/cluster/controllers/lookup.ts';
import { scenarios } from '../../../src/playground/cluster/scenarios/index.ts';
import { Play } from './play.ts';

const MINUTE = 60_000;

describe.each(scenarios.map((scenario) => scenario.id))('scenario %s', (id) => {
  it('stays as it is for 20 minutes when nobody does anything', () => {
    const play = Play.scenario(id);
    const before = play.picture();
    play.run(20 * MINUTE, 5000);
    const after = play.picture();
    expect(after.filter((line) => !before.includes(line))).toEqual([]);
    expect(after).toHaveLength(before.length);
  });
});

describe('the incident', () => {
  it('is the state of the source article', () => {
    const play = Play.scenario('incident');
    const { store } = play;
    expect(play.attachments('n1')).toHaveLength(3);
    expect(play.attachments('n1').every((entry) => entry.metadata.deletionTimestamp === undefined)).toBe(true);
    expect(conditionOf(store.need('nodes', undefined, 'n1').status?.conditions, 'Ready')?.status).toBe('Unknown');
    const pods = store.list('pods', 'shop');
    expect(pods.map((pod) => [pod.metadata.name, pod.spec.nodeName, pod.status?.phase])).toEqual([
      ['db-0', 'n2', 'Pending'],
      ['db-1', 'n3', 'Pending'],
      ['db-2', 'n2', 'Pending'],
    ]);
    const deleting = store
      .list('persistentvolumeclaims', 'shop')
      .filter((claim) => claim.metadata.deletionTimestamp !== undefined);
    expect(deleting.map((claim) => claim.metadata.name)).toEqual(['data-db-0', 'data-db-1']);
    const cache = play.volumeOf('ci-cache', 'ci');
    expect([cache.status?.phase, cache.metadata.deletionTimestamp !== undefined]).toEqual(['Bound', true]);
    const provisioners = store
      .list('pods', 'kube-system')
      .flatMap((pod) => pod.spec.containers)
      .filter((container) => container.name === 'csi-provisioner');
    expect(provisioners.map((container) => container.image)).toEqual([
      'registry.k8s.io/sig-storage/csi-provisioner:v4.0.1',
    ]);
    const known = new Set(store.list('persistentvolumes').map((volume) => volume.spec.csi?.volumeHandle));
    const orphans = play.cluster.backend
      .inventory()
      .filter((item) => item.clusterId === play.cluster.uid && !known.has(item.handle));
    expect(orphans).toHaveLength(3);
    for (const orphan of orphans) {
      expect(orphan.attachedTo).toEqual([]);
      expect(orphan.seenAt).toEqual(['2026-11-29T11:00:00Z', '2026-11-30T12:00:00Z']);
    }
  });

  it('is healed by the out-of-service taint, and the data of the deleted claims survives with policy Retain', () => {
    const play = Play.scenario('incident');
    const volumes = ['data-db-0', 'data-db-1'].map((claim) => play.volumeOf(claim).metadata.name);
    for (const volume of volumes) play.retain(volume);
    play.taint('n1');
    play.run(6000);
    expect(play.ready()).toEqual(['db-0', 'db-1', 'db-2']);
    expect(play.attachments('n1')).toEqual([]);
    expect(play.store.need('nodes', undefined, 'n1').status?.volumesAttached).toBeUndefined();
    expect(play.store.need('nodes', undefined, 'n1').status?.volumesInUse).toHaveLength(3);

    play.store.mutate('statefulsets', 'shop', 'db', (draft) => {
      draft.spec.replicas = 0;
    });
    play.run(2 * MINUTE);
    expect(play.store.list('persistentvolumeclaims', 'shop').map((claim) => claim.metadata.name)).toEqual([
      'data-db-2',
    ]);
    for (const name of volumes) {
      const volume = play.store.need('persistentvolumes', undefined, name);
      expect([volume.status?.phase, volume.spec.persistentVolumeReclaimPolicy]).toEqual(['Released', 'Retain']);
    }
    expect(play.cluster.backend.calls('DeleteVolume')).toEqual([]);
  });

  it('gives the old data back: without claimRef.uid the volume binds to the claim that the StatefulSet makes anew', () => {
    const play = Play.scenario('incident');
    const volume = play.volumeOf('data-db-0').metadata.name;
    play.retain(volume);
    play.retain(play.volumeOf('data-db-1').metadata.name);
    play.taint('n1');
    play.run(6000);
    const scale = (replicas: number): void => {
      play.store.mutate('statefulsets', 'shop', 'db', (draft) => {
        draft.spec.replicas = replicas;
      });
    };
    scale(0);
    play.run(10_000);
    play.store.mutate('persistentvolumes', undefined, volume, (draft) => {
      if (draft.spec.claimRef === undefined) return;
      draft.spec.claimRef = { namespace: 'shop', name: 'data-db-0' };
    });
    play.run(4000);
    scale(3);
    play.run(MINUTE);
    expect(play.volumeOf('data-db-0').metadata.name).toBe(volume);
    expect(play.ready()).toEqual(['db-0', 'db-1', 'db-2']);
  });

  it('shows what the wrong path costs: with policy Delete the backend volumes of the deleted claims are destroyed', () => {
    const play = Play.scenario('incident');
    const handles = ['data-db-0', 'data-db-1'].map((claim) => play.volumeOf(claim).spec.csi?.volumeHandle);
    play.taint('n1');
    play.run(6000);
    for (const pod of play.ready()) play.store.remove('pods', 'shop', pod);
    play.run(MINUTE);
    const deleted = play.cluster.backend.calls('DeleteVolume').map((call) => call.handle);
    expect([...deleted].sort()).toEqual([...handles].sort());
  });

  it('refuses to attach the volume of ci-cache once its pod moves', () => {
    const play = Play.scenario('incident');
    const pod = play.store.list('pods', 'ci')[0];
    play.store.mutate('nodes', undefined, 'n3', (draft) => {
      draft.spec = { ...draft.spec, unschedulable: true };
    });
    play.store.remove('pods', 'ci', pod?.metadata.name ?? '');
    play.run(20_000);
    const name = play.volumeOf('ci-cache', 'ci').metadata.name;
    expect(play.messages('FailedAttachVolume')).toContain(
      `AttachVolume.Attach failed for volume "${name}" : PersistentVolume "${name}" is marked for deletion`,
    );
  });
});

describe('claim-terminating', () => {
  it('lets the claim go when the finished pod is deleted, and keeps the volume with policy Retain', () => {
    const play = Play.scenario('claim-terminating');
    const volume = play.volumeOf('reports').metadata.name;
    play.retain(volume);
    play.store.remove('pods', 'shop', 'nightly-report-x7k2p');
    play.run(10_000);
    expect(play.store.get('persistentvolumeclaims', 'shop', 'reports')).toBeUndefined();
    expect(play.store.need('persistentvolumes', undefined, volume).status?.phase).toBe('Released');
    expect(play.store.get('persistentvolumeclaims', 'shop', 'uploads')).toBeDefined();
    expect(play.cluster.backend.calls('DeleteVolume')).toEqual([]);
  });
});

describe('volume-leak', () => {
  it('leaks the volume when the claim goes with policy Delete: no DeleteVolume, no event, no object', () => {
    const play = Play.scenario('volume-leak');
    const { name, handle } = {
      name: play.volumeOf('orders-data').metadata.name,
      handle: play.volumeOf('orders-data').spec.csi?.volumeHandle ?? '',
    };
    play.store.remove('deployments', 'shop', 'orders');
    play.store.remove('persistentvolumeclaims', 'shop', 'orders-data');
    play.run(MINUTE);
    expect(play.store.get('persistentvolumes', undefined, name)).toBeUndefined();
    expect(play.cluster.backend.get(handle)).toBeDefined();
    expect(play.cluster.backend.calls('DeleteVolume').filter((call) => call.handle === handle)).toEqual([]);
  });

  it('leaves the refused volume Released, and deletes it when the backend allows', () => {
    const play = Play.scenario('volume-leak');
    const released = play.store.list('persistentvolumes').find((volume) => volume.status?.phase === 'Released');
    const name = released?.metadata.name ?? '';
    expect(play.messages('VolumeFailedDelete', name)[0]).toMatch(
      /^rpc error: code = Internal desc = .* has dependent snapshots$/,
    );
    play.cluster.backend.heal();
    play.run(6 * MINUTE, 5000);
    expect(play.store.get('persistentvolumes', undefined, name)).toBeUndefined();
  });

  it('stops deleting once the policy is Retain', () => {
    const play = Play.scenario('volume-leak');
    const released = play.store.list('persistentvolumes').find((volume) => volume.status?.phase === 'Released');
    play.retain(released?.metadata.name ?? '');
    const before = play.cluster.backend.calls('DeleteVolume').length;
    play.run(10 * MINUTE, 5000);
    expect(play.cluster.backend.calls('DeleteVolume')).toHaveLength(before);
  });
});

describe('multi-attach', () => {
  it('names the old pod as the user, and is healed by the out-of-service taint within the garbage collector’s period', () => {
    const play = Play.scenario('multi-attach');
    const [old, fresh] = play.store
      .list('pods', 'shop')
      .sort((a, b) => (a.spec.nodeName ?? '').localeCompare(b.spec.nodeName ?? ''));
    expect(play.messages('FailedAttachVolume', fresh?.metadata.name)).toEqual([
      `Waiting for detach for volume "${play.volumeOf('web-data').metadata.name}" Volume is already used by pod(s) ${old?.metadata.name}`,
    ]);
    play.taint('n1');
    play.run(26_000);
    expect(play.ready()).toEqual([fresh?.metadata.name]);
    expect(play.attachments('n1')).toEqual([]);
  });
});

describe('rollout-deadlock', () => {
  it('is healed by the strategy Recreate', () => {
    const play = Play.scenario('rollout-deadlock');
    play.store.mutate('deployments', 'shop', 'web', (draft) => {
      draft.spec.strategy = { type: 'Recreate' };
    });
    play.run(10_000);
    const pods = play.store.list('pods', 'shop');
    expect(pods.map((pod) => [pod.spec.containers[0]?.image, pod.status?.phase])).toEqual([
      ['registry.example.com/web:5.2', 'Running'],
    ]);
    const progressing = conditionOf(play.store.need('deployments', 'shop', 'web').status?.conditions, 'Progressing');
    expect([progressing?.status, progressing?.reason]).toEqual(['True', 'NewReplicaSetAvailable']);
  });
});

describe('class-or-zone', () => {
  it('tells both pods why they wait', () => {
    const play = Play.scenario('class-or-zone');
    const verdicts = play.store
      .list('pods', 'shop')
      .map((pod) => conditionOf(pod.status?.conditions, 'PodScheduled')?.message);
    expect(verdicts).toEqual([
      '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found',
      "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    ]);
    expect(play.messages('ProvisioningFailed')).toEqual(['storageclass.storage.k8s.io "fast-ssd" not found']);
  });

  it('is healed by the class, and by a node in the zone', () => {
    const play = Play.scenario('class-or-zone');
    play.store.create('storageclasses', { metadata: { name: 'fast-ssd' }, provisioner: play.cluster.settings.driver });
    play.store.mutate('nodes', undefined, 'n3', (draft) => {
      draft.metadata.labels = { ...draft.metadata.labels, 'topology.kubernetes.io/zone': 'z3' };
    });
    play.run(10_000);
    expect(play.ready()).toHaveLength(2);
  });
});
