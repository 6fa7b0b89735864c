import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../../src/domain/cluster.ts';
import type { ObjectMeta } from '../../src/domain/objects.ts';
import { type Remediation, risks } from '../../src/domain/remediation.ts';
import type { ResourceName } from '../../src/domain/resources.ts';
import { effectOf, type Write } from '../../src/domain/write.ts';
import { loadRemediations, NOW } from '../support/fixture.ts';
import { type Attempt, aim, attempt, CLUSTER_ID, paramsOf, targetOf, uidGiven, world } from './worlds.ts';

let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

/** Without these nothing may be done, whatever the state. */
const essentials: Readonly<Record<string, readonly ResourceName[]>> = {
  'set-reclaim-policy-retain': ['persistentvolumes'],
  'delete-finished-pod': ['pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'delete-pod': ['pods', 'nodes', 'persistentvolumeclaims', 'persistentvolumes'],
  'force-delete-pod': ['pods', 'nodes', 'leases', 'persistentvolumeclaims', 'persistentvolumes', 'volumeattachments'],
  'taint-node-out-of-service': [
    'nodes',
    'leases',
    'pods',
    'volumeattachments',
    'persistentvolumeclaims',
    'persistentvolumes',
  ],
  'remove-out-of-service-taint': ['nodes', 'volumeattachments'],
  'delete-attachment': ['volumeattachments', 'nodes', 'pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'remove-finalizer': [],
  'set-recreate-strategy': [
    'deployments',
    'replicasets',
    'pods',
    'nodes',
    'persistentvolumeclaims',
    'persistentvolumes',
  ],
  'scale-down-and-restore': ['horizontalpodautoscalers', 'pods', 'persistentvolumeclaims', 'persistentvolumes'],
  'recreate-pending-claim': ['persistentvolumeclaims', 'persistentvolumes', 'pods', 'statefulsets', 'storageclasses'],
  'take-snapshot': ['persistentvolumeclaims', 'persistentvolumes', 'volumesnapshots', 'volumesnapshotclasses'],
  'cordon-node': ['nodes'],
  'clear-selected-node': ['persistentvolumeclaims', 'persistentvolumes', 'nodes'],
  'lower-resize-request': ['persistentvolumeclaims'],
  'expand-claim': ['persistentvolumeclaims', 'persistentvolumes', 'storageclasses', 'resourcequotas'],
  'patch-mount-options': ['persistentvolumes', 'persistentvolumeclaims', 'pods'],
  'mark-default-class': ['storageclasses', 'persistentvolumeclaims'],
  'restart-driver-pod': ['pods'],
  'delete-unready-snapshot': ['volumesnapshots', 'persistentvolumeclaims', 'persistentvolumes'],
  'make-volume-rebindable': ['persistentvolumes', 'persistentvolumeclaims', 'volumeattachments'],
  'recreate-volume-object': ['persistentvolumes', 'persistentvolumeclaims'],
  'delete-backend-volume': ['backendvolumes', 'persistentvolumes', 'volumesnapshotcontents'],
};

/** Runs over many worlds and counts the plans that were made, so that a property over nothing is seen. */
function check(
  id: string,
  look: (
    attempt: Attempt,
    params: Readonly<Record<string, unknown>>,
    cluster: Cluster,
    remediation: Remediation,
  ) => void,
  numRuns = 200,
): number {
  const remediation = remediations.find((candidate) => candidate.id === id);
  const params = paramsOf[id];
  if (!remediation || !params) throw new Error(`no parameters are made for ${id}`);
  let plans = 0;
  fc.assert(
    fc.property(world, params, fc.option(fc.nat(20), { freq: 4 }), (cluster, wild, at) => {
      const given = at === null ? wild : aim(id, wild, cluster, at);
      const result = attempt(remediation, given, cluster);
      if (result.writes.length > 0) plans += 1;
      look(result, given, cluster, remediation);
    }),
    { numRuns, seed: 20261130 },
  );
  return plans;
}

describe.each(Object.keys(paramsOf))('%s, whatever its parameters and the cluster', (id) => {
  it('writes only what it declares, to the object of that name and uid, on the condition of its uid', () => {
    const plans = check(id, ({ writes }, params, _, remediation) => {
      for (const write of writes) {
        expect(remediation.touches).toContainEqual({
          verb: write.verb,
          resource: write.resource,
          ...(write.verb === 'patch' && write.subresource ? { subresource: write.subresource } : {}),
        });
        expect(write.name).toBe(
          id === 'take-snapshot' ? `k8s-storage-bot-${String(params['uid'])}` : targetOf(id, params),
        );
        expect(write.namespace).toBe(params['namespace'] ?? null);
        expect(write.uid).toBe(write.verb === 'create' ? null : uidGiven(id, params));
        if (write.verb === 'patch')
          expect(write.body[0]).toEqual({ op: 'test', path: '/metadata/uid', value: uidGiven(id, params) });
        if (write.verb === 'delete') expect(write.body.preconditions.uid).toBe(uidGiven(id, params));
      }
    });
    expect(plans).toBeGreaterThan(0);
  });

  it('names only objects that are there, never more than one finalizer in a write, and that one as given', () => {
    check(id, ({ writes }, params, cluster) => {
      for (const [at, write] of writes.entries()) {
        if (id === 'take-snapshot') continue;
        const live = findLive(write, cluster);
        expect(live?.uid).toBe(uidGiven(id, params));
        if (write.verb !== 'patch') continue;
        // The one plan of several finalizers: each write finds the next one in the first place.
        if (id === 'recreate-volume-object') expectFinalizer(write, live?.finalizers.slice(at), live?.finalizers[at]);
        else expectSafeFinalizers(write, live, params['finalizer']);
      }
    });
  });

  it('promises never less proof and risk than its row, and says when data goes', () => {
    check(id, ({ writes }, params, cluster, remediation) => {
      if (writes.length === 0) return;
      const { requires, risk, dataLoss } = remediation.assess(params, cluster);
      expect(requires).toEqual(expect.arrayContaining([...remediation.requires]));
      expect(risks.indexOf(risk)).toBeGreaterThanOrEqual(
        risks.indexOf(dataLoss === 'none' ? remediation.risk : 'high'),
      );
      if (dataLoss === 'certain') expect(requires).toContain('data-disposable');
    });
  });

  it('does nothing when a kind that it rests on could not be read', () => {
    check(id, ({ refusals }, _, cluster, remediation) => {
      const needed = essentials[id] ?? [];
      expect(remediation.needs).toEqual(expect.arrayContaining([...needed]));
      if (needed.some((resource) => !cluster.isRead(resource))) expect(refusals).not.toEqual([]);
    });
  });

  it('has its effect open before it is done, by what the live object says', () => {
    check(id, ({ writes }, _, cluster) => {
      const [first] = writes;
      if (first?.verb !== 'delete') return;
      const live = findLive(first, cluster);
      const isOrdered = live?.deletedAt !== undefined;
      const raw = {
        metadata: {
          uid: live?.uid ?? '',
          ...(isOrdered ? { deletionTimestamp: 'T', deletionGracePeriodSeconds: 30 } : {}),
        },
      };
      expect(effectOf(first, raw)).toBe(isOrdered && first.body.gracePeriodSeconds === undefined ? 'applied' : 'open');
    });
  });
});

function findLive(write: Write, cluster: Cluster): ObjectMeta | undefined {
  const all: readonly ObjectMeta[] = cluster.objects[write.resource];
  return all.find((live) => live.namespace === write.namespace && live.name === write.name);
}

/** What a plan may write under `metadata`, besides the one finalizer. */
const annotationPaths: readonly string[] = [
  '/metadata/annotations/volume.kubernetes.io~1selected-node',
  '/metadata/annotations/storageclass.kubernetes.io~1is-default-class',
  '/metadata/annotations',
];

function expectSafeFinalizers(
  write: Write & { readonly verb: 'patch' },
  live: ObjectMeta | undefined,
  given: unknown,
): void {
  const touched = write.body.filter(
    ({ path }) => path.startsWith('/metadata/') && path !== '/metadata/uid' && !annotationPaths.includes(path),
  );
  if (touched.length === 0) return;
  expectFinalizer(write, live?.finalizers, given);
  expect(live?.deletedAt).toBeDefined();
  expect(['nodes', 'namespaces']).not.toContain(write.resource);
  expect(given).not.toBe('kubernetes.io/pv-protection');
}

/** Exactly one finalizer goes: the given one, by its place and on the condition that it stands there. */
function expectFinalizer(
  write: Write & { readonly verb: 'patch' },
  standing: readonly string[] | undefined,
  given: unknown,
): void {
  const [uidTest, test, remove, ...more] = write.body;
  expect(uidTest?.path).toBe('/metadata/uid');
  expect(more).toEqual([]);
  expect(test).toEqual({ op: 'test', path: remove?.path, value: given });
  expect(remove?.op).toBe('remove');
  expect(remove?.path).toMatch(/^\/metadata\/finalizers\/\d+$/);
  expect(standing?.[Number(remove?.path.split('/').at(-1))]).toBe(given);
}

describe('what is never offered, whatever the parameters', () => {
  /** These need many objects to meet. */
  const rare: ReadonlySet<string> = new Set([
    'delete-pod',
    'remove-finalizer',
    'recreate-pending-claim',
    'recreate-volume-object',
    'make-volume-rebindable',
    'cordon-node',
    'delete-backend-volume',
    'expand-claim',
  ]);

  /** What passed both plan and preflight. */
  function offered(id: string, look: (params: Readonly<Record<string, unknown>>, cluster: Cluster) => void): void {
    let count = 0;
    check(
      id,
      ({ writes, refusals }, params, cluster) => {
        if (writes.length === 0 || refusals.length > 0) return;
        count += 1;
        look(params, cluster);
      },
      rare.has(id) ? 4000 : 800,
    );
    expect(count, `offers of ${id}`).toBeGreaterThan(0);
  }

  it('fencing a machine that is Ready or shows a sign of life', () => {
    offered('taint-node-out-of-service', (params, cluster) => {
      const node = String(params['node']);
      expect(cluster.nodeState(node)).toBe('not-ready');
      expect(cluster.signOfLife(node)).toBeUndefined();
    });
    offered('force-delete-pod', (params, cluster) => {
      const node = cluster.findPod('shop', String(params['name']))?.nodeName ?? '';
      expect(cluster.nodeState(node)).not.toBe('ready');
      expect(cluster.signOfLife(node)).toBeUndefined();
    });
  });

  it('deleting a pod without a controller', () => {
    for (const id of ['delete-pod', 'delete-finished-pod', 'force-delete-pod']) {
      offered(id, (params, cluster) => {
        expect(cluster.findPod('shop', String(params['name']))?.owners.some((owner) => owner.controller)).toBe(true);
      });
    }
  });

  it('deleting a claim with a volume', () => {
    offered('recreate-pending-claim', (params, cluster) => {
      const claim = cluster.findClaim('shop', String(params['name']));
      expect(claim?.phase).toBe('Pending');
      expect(claim && cluster.volumeOfClaim(claim)).toBeUndefined();
    });
  });

  it('ordering the detach of an attachment twice', () => {
    offered('delete-attachment', (params, cluster) => {
      expect(cluster.findAttachment(String(params['attachment']))?.deletedAt).toBeUndefined();
    });
  });

  it('a finalizer of a volume that an attachment still names', () => {
    offered('remove-finalizer', (params, cluster) => {
      if (params['resource'] === 'persistentvolumes')
        expect(cluster.attachmentsOfVolume(String(params['name']))).toEqual([]);
    });
  });

  it('a volume object made again without Retain, or while another claim could get it', () => {
    offered('recreate-volume-object', (params, cluster) => {
      const volume = cluster.findVolume(String(params['volume']));
      if ('handle' in params) {
        expect(volume).toBeUndefined();
        expect(cluster.findClaim('shop', String(params['claim']))).toMatchObject({
          phase: 'Lost',
          uid: params['claimUid'],
          volumeName: params['volume'],
        });
        expect(cluster.volumesNamingHandle(String(params['handle']))).toEqual([]);
        return;
      }
      expect(volume?.reclaimPolicy).toBe('Retain');
      expect(volume?.deletedAt).toBeDefined();
      expect(volume && cluster.claimOfVolume(volume)?.volumeName).toBe(volume?.name);
    });
    check('recreate-volume-object', ({ writes }) => {
      const last = writes.at(-1);
      if (last?.verb !== 'create') return expect(writes).toEqual([]);
      expect(writes.filter(({ verb }) => verb === 'create')).toHaveLength(1);
      expect(last.body['spec']).toMatchObject({ persistentVolumeReclaimPolicy: 'Retain' });
      expect(Object.keys(last.body['metadata'] ?? {})).not.toContain('uid');
      expect(JSON.stringify(last.body)).not.toContain('resourceVersion');
    });
  });

  it('a volume that is attached, or whose claim still exists, given to another claim', () => {
    offered('make-volume-rebindable', (params, cluster) => {
      expect(cluster.attachmentsOfVolume(String(params['volume']))).toEqual([]);
      expect(cluster.findClaimByUid(String(params['claimUid']))).toBeUndefined();
      expect(cluster.findVolume(String(params['volume']))?.reclaimPolicy).toBe('Retain');
    });
  });

  it('deleting a snapshot that was ready', () => {
    offered('delete-unready-snapshot', (params, cluster) => {
      expect(cluster.findSnapshot('shop', String(params['name']))?.ready).toBe(false);
    });
  });

  it('a snapshot of a claim that is being deleted', () => {
    offered('take-snapshot', (params, cluster) => {
      expect(cluster.findClaim('shop', String(params['claim']))?.deletedAt).toBeUndefined();
    });
  });

  it('a larger claim that is smaller, more than twice as large, or of a class that forbids it', () => {
    offered('expand-claim', (params, cluster) => {
      expect(params['to']).toBe('15Gi');
      const claim = cluster.findClaim('shop', String(params['name']));
      expect(cluster.findClass(claim?.className ?? '')?.allowExpansion).toBe(true);
    });
  });

  it('a request at or below what the claim has', () => {
    offered('lower-resize-request', (params) => {
      expect(params['to']).toBe('12Gi');
    });
  });

  it('a second default class', () => {
    offered('mark-default-class', (_, cluster) => {
      expect(cluster.objects.storageclasses.filter((found) => found.isDefault)).toEqual([]);
    });
  });

  it('the last node that takes pods being cordoned', () => {
    offered('cordon-node', (params, cluster) => {
      const others = cluster.objects.nodes.filter(
        (node) => node.name !== params['node'] && !node.unschedulable && node.ready?.status === 'True',
      );
      expect(others).not.toEqual([]);
    });
  });

  it('a selected node taken off that exists', () => {
    offered('clear-selected-node', (params, cluster) => {
      expect(cluster.findNode(String(params['node']))).toBeUndefined();
    });
  });

  it('mount options changed under a pod that runs, or a driver restarted by a pod without a controller', () => {
    offered('patch-mount-options', (params, cluster) => {
      const volume = cluster.findVolume(String(params['volume']));
      const users = volume ? cluster.podsOfVolume(volume) : [];
      expect(users.filter((pod) => pod.phase === 'Running' && pod.containers.length > 0)).toEqual([]);
    });
    offered('restart-driver-pod', (params, cluster) => {
      if (params['kind'] !== 'Pod') return;
      expect(cluster.findPod('shop', String(params['name']))?.owners.some((owner) => owner.controller)).toBe(true);
    });
  });

  it('a volume of the backend that is named, attached, young, of another cluster, or without a snapshot before', () => {
    offered('delete-backend-volume', (params, cluster) => {
      const [volume] = cluster.backendVolumesOfHandle(String(params['handle']));
      expect(cluster.objects.persistentvolumes.map(({ csi }) => csi?.handle)).not.toContain(params['handle']);
      expect(volume).toMatchObject({ clusterId: CLUSTER_ID, attachedTo: [], snapshots: [] });
      expect(NOW - (volume?.createdAt ?? NOW)).toBeGreaterThan(24 * 3_600_000);
      expect((volume?.lastSeenAt ?? 0) - (volume?.firstSeenAt ?? 0)).toBeGreaterThanOrEqual(24 * 3_600_000);
    });
    check('delete-backend-volume', ({ writes }) => {
      if (writes.length > 0) expect(writes.map(({ verb }) => verb)).toEqual(['patch', 'delete']);
    });
  });

  it('a policy switched to anything but Retain', () => {
    check('set-reclaim-policy-retain', ({ writes }) => {
      for (const write of writes) {
        const values =
          write.verb === 'patch'
            ? write.body.flatMap((operation) => (operation.op === 'replace' ? [operation.value] : []))
            : [];
        expect(values).toEqual(['Retain']);
      }
    });
  });
});

it('these properties are asked of every remediation', () => {
  expect(Object.keys(paramsOf).toSorted()).toEqual(remediations.map(({ id }) => id).toSorted());
});

it('the kinds that a remediation needs include those that it touches', () => {
  for (const { id, needs, touches } of remediations) {
    const missing = touches
      .map((touch) => touch.resource)
      .filter((resource: ResourceName) => !needs.includes(resource));
    expect(missing, id).toEqual([]);
  }
});

it('a world of these properties is read at the fixtures’ clock', () => {
  const [sample] = fc.sample(world, 1);
  expect(sample?.now).toBe(NOW);
  expect(sample).toBeInstanceOf(Cluster);
});
