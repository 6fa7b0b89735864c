import type { Kinds, Pod } from '../kinds.ts';
import type { Context, Controller } from './context.ts';
import { controllerOf, isPodReady, ownedBy, shortHash } from './lookup.ts';

type StatefulSet = Kinds['statefulsets'];

/** Name of the revision of a StatefulSet's template, as its pods carry it in `controller-revision-hash`. */
export function revisionOf(set: StatefulSet): string {
  return `${set.metadata.name}-${shortHash(set.spec.template)}`;
}

/** Name of the claim of a template for an ordinal. */
function claimName(set: StatefulSet, template: string, ordinal: number): string {
  return `${template}-${set.metadata.name}-${ordinal}`;
}

/** The pod of an ordinal, as the StatefulSet controller makes it. */
export function statefulPod(
  set: StatefulSet,
  ordinal: number,
): {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Pod['spec'];
} {
  const name = `${set.metadata.name}-${ordinal}`;
  const { template } = set.spec;
  const templates = set.spec.volumeClaimTemplates ?? [];
  const names = new Set(templates.map((entry) => entry.metadata.name));
  const others = (template.spec.volumes ?? []).filter((volume) => !names.has(volume.name));
  return {
    metadata: {
      name,
      generateName: `${set.metadata.name}-`,
      namespace: set.metadata.namespace,
      labels: {
        ...template.metadata?.labels,
        'apps.kubernetes.io/pod-index': String(ordinal),
        'controller-revision-hash': revisionOf(set),
        'statefulset.kubernetes.io/pod-name': name,
      },
      ...(template.metadata?.annotations === undefined ? {} : { annotations: template.metadata.annotations }),
      ownerReferences: [ownedBy(set)],
    },
    spec: {
      ...structuredClone(template.spec),
      hostname: name,
      subdomain: set.spec.serviceName ?? '',
      volumes: [
        ...templates.map((entry) => ({
          name: entry.metadata.name,
          persistentVolumeClaim: { claimName: claimName(set, entry.metadata.name, ordinal) },
        })),
        ...others,
      ],
    },
  };
}

/**
 * The StatefulSet controller: one pod per ordinal, its claims made from templates, in order (OrderedReady) or all at
 * once (Parallel). A claim that is being deleted keeps its pod from being made; a pod that terminates is never replaced
 * before its object is gone. Source: pkg/controller/statefulset/stateful_set_control.go.
 */
export class StatefulSetController implements Controller {
  readonly name = 'statefulset';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    for (const set of context.store.list('statefulsets')) {
      if (set.metadata.deletionTimestamp === undefined) this.#sync(context, set);
      this.#report(context, set);
    }
  }

  #pods(context: Context, set: StatefulSet): Map<number, Pod> {
    const pods = new Map<number, Pod>();
    for (const pod of context.store.list('pods', set.metadata.namespace ?? '')) {
      if (controllerOf(pod)?.uid !== set.metadata.uid) continue;
      const ordinal = Number(pod.metadata.name.slice(set.metadata.name.length + 1));
      if (Number.isInteger(ordinal)) pods.set(ordinal, pod);
    }
    return pods;
  }

  #sync(context: Context, set: StatefulSet): void {
    const { store } = context;
    const replicas = set.spec.replicas ?? 1;
    const ordered = set.spec.podManagementPolicy !== 'Parallel';
    const pods = this.#pods(context, set);
    this.#own(context, set, pods, replicas);
    for (let ordinal = 0; ordinal < replicas; ordinal += 1) {
      const pod = pods.get(ordinal);
      if (pod === undefined) {
        this.#create(context, set, ordinal);
        if (ordered) return;
        continue;
      }
      const { name, namespace, deletionTimestamp } = pod.metadata;
      const finished = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
      if (finished && deletionTimestamp === undefined) store.remove('pods', namespace, name);
      if (deletionTimestamp === undefined && pod.status?.phase === 'Pending') this.#claims(context, set, ordinal);
      if (ordered && (deletionTimestamp !== undefined || !isPodReady(pod))) return;
    }
    const condemned = [...pods].filter(([ordinal]) => ordinal >= replicas).sort(([a], [b]) => b - a);
    for (const [, pod] of condemned) {
      if (pod.metadata.deletionTimestamp === undefined) {
        store.remove('pods', pod.metadata.namespace, pod.metadata.name);
        this.#tell(
          context,
          set,
          'Normal',
          'SuccessfulDelete',
          `Delete Pod ${pod.metadata.name} in StatefulSet ${set.metadata.name} successful`,
        );
      }
      if (ordered) return;
    }
    if (condemned.length === 0) this.#roll(context, set, pods, replicas);
  }

  /**
   * Claim retention by owner references (stateful_set_utils.go updateClaimOwnerRefForSetAndPod): `whenDeleted: Delete`
   * makes the set an owner, `whenScaled: Delete` the pod of an ordinal that is scaled away; the garbage collector then
   * deletes the claim with its owner. A policy that is set back to Retain takes the references away again.
   */
  #own(context: Context, set: StatefulSet, pods: ReadonlyMap<number, Pod>, replicas: number): void {
    const policy = set.spec.persistentVolumeClaimRetentionPolicy;
    const ordinals = new Set([...pods.keys(), ...Array.from({ length: replicas }, (_unused, index) => index)]);
    for (const ordinal of ordinals) {
      const pod = pods.get(ordinal);
      const owners = [
        ...(policy?.whenDeleted === 'Delete' ? [ownedBy(set)] : []),
        ...(policy?.whenScaled === 'Delete' && ordinal >= replicas && pod !== undefined ? [ownedBy(pod)] : []),
      ];
      // A condemned pod alone must be able to take the claim along.
      const wanted = owners.length > 1 ? owners.slice(1) : owners;
      for (const template of set.spec.volumeClaimTemplates ?? []) {
        const name = claimName(set, template.metadata.name, ordinal);
        context.store.mutate('persistentvolumeclaims', set.metadata.namespace, name, (draft) => {
          const managed = new Set(['StatefulSet', 'Pod']);
          const others = (draft.metadata.ownerReferences ?? []).filter((owner) => !managed.has(owner.kind));
          draft.metadata.ownerReferences = [
            ...others,
            ...wanted.map((owner) => ({ ...owner, controller: owner.kind === 'StatefulSet' })),
          ];
        });
      }
    }
  }

  #roll(context: Context, set: StatefulSet, pods: ReadonlyMap<number, Pod>, replicas: number): void {
    if (set.spec.updateStrategy?.type === 'OnDelete') return;
    const revision = revisionOf(set);
    for (let ordinal = replicas - 1; ordinal >= 0; ordinal -= 1) {
      const pod = pods.get(ordinal);
      if (pod === undefined || pod.metadata.deletionTimestamp !== undefined) return;
      if (pod.metadata.labels?.['controller-revision-hash'] !== revision) {
        context.store.remove('pods', pod.metadata.namespace, pod.metadata.name);
        return;
      }
      if (!isPodReady(pod)) return;
    }
  }

  /** Makes the missing claims of an ordinal; returns the name of the one that is being deleted, if any. */
  #claims(context: Context, set: StatefulSet, ordinal: number): string | undefined {
    const { store } = context;
    for (const template of set.spec.volumeClaimTemplates ?? []) {
      const name = claimName(set, template.metadata.name, ordinal);
      const claim = store.get('persistentvolumeclaims', set.metadata.namespace, name);
      if (claim === undefined) {
        store.create('persistentvolumeclaims', {
          metadata: { name, namespace: set.metadata.namespace, labels: set.spec.selector.matchLabels ?? {} },
          spec: structuredClone(template.spec),
        });
      } else if (claim.metadata.deletionTimestamp !== undefined) return name;
    }
    return undefined;
  }

  #create(context: Context, set: StatefulSet, ordinal: number): void {
    const pod = statefulPod(set, ordinal);
    const name = `${set.metadata.name}-${ordinal}`;
    const deleting = this.#claims(context, set, ordinal);
    if (deleting !== undefined) {
      this.#tell(
        context,
        set,
        'Warning',
        'FailedCreate',
        `Create Pod ${name} in StatefulSet ${set.metadata.name} failed error: pvc ${deleting} is being deleted`,
      );
      return;
    }
    context.store.create('pods', pod);
    this.#tell(
      context,
      set,
      'Normal',
      'SuccessfulCreate',
      `Create Pod ${name} in StatefulSet ${set.metadata.name} successful`,
    );
  }

  #tell(context: Context, set: StatefulSet, type: 'Normal' | 'Warning', reason: string, message: string): void {
    context.recorder.tell({ on: set, type, reason, message, component: 'statefulset-controller' });
  }

  #report(context: Context, set: StatefulSet): void {
    const pods = [...this.#pods(context, set).values()].filter((pod) => pod.status?.phase !== 'Failed');
    const revision = revisionOf(set);
    const live = pods.filter((pod) => pod.metadata.deletionTimestamp === undefined);
    const ready = live.filter(isPodReady).length;
    const updated = live.filter((pod) => pod.metadata.labels?.['controller-revision-hash'] === revision).length;
    const settled = updated === (set.spec.replicas ?? 1) && ready === updated;
    const current = settled ? revision : (set.status?.currentRevision ?? revision);
    context.store.mutate('statefulsets', set.metadata.namespace, set.metadata.name, (draft) => {
      draft.status = {
        ...draft.status,
        observedGeneration: set.metadata.generation ?? 1,
        replicas: pods.length,
        readyReplicas: ready === 0 ? undefined : ready,
        availableReplicas: ready,
        currentReplicas: live.filter((pod) => pod.metadata.labels?.['controller-revision-hash'] === current).length,
        updatedReplicas: updated,
        currentRevision: current,
        updateRevision: revision,
        collisionCount: 0,
      };
    });
  }
}
