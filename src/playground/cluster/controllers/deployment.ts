import { same } from '../json.ts';
import type { Condition, Kinds, Pod, PodTemplate } from '../kinds.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { ageOf, conditionOf, controllerOf, isActive, isPodReady, ownedBy, setCondition, shortHash } from './lookup.ts';

type Deployment = Kinds['deployments'];
type ReplicaSet = Kinds['replicasets'];

const HASH = 'pod-template-hash';

function withoutHash(template: PodTemplate | undefined): unknown {
  if (template === undefined) return undefined;
  const labels = Object.fromEntries(Object.entries(template.metadata?.labels ?? {}).filter(([key]) => key !== HASH));
  return { ...template, metadata: { ...template.metadata, labels } };
}

/** The ReplicaSet of a Deployment's template, as its controller makes it. */
export function replicaSetFor(
  deployment: Deployment,
  replicas: number,
  revision: number,
): Readonly<Record<string, unknown>> {
  const hash = shortHash(deployment.spec.template);
  const template = structuredClone(deployment.spec.template);
  const labels = { ...template.metadata?.labels, [HASH]: hash };
  return {
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace,
      labels,
      annotations: {
        'deployment.kubernetes.io/desired-replicas': String(deployment.spec.replicas ?? 1),
        'deployment.kubernetes.io/revision': String(revision),
      },
      ownerReferences: [ownedBy(deployment)],
    },
    spec: {
      replicas,
      selector: { ...deployment.spec.selector, matchLabels: { ...deployment.spec.selector.matchLabels, [HASH]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  };
}

/** Whole number of an int-or-percent of the replicas. */
function resolve(value: number | string | undefined, replicas: number, up: boolean): number {
  if (typeof value === 'number') return value;
  const share = (Number((value ?? '25%').replace('%', '')) * replicas) / 100;
  return up ? Math.ceil(share) : Math.floor(share);
}

/** maxSurge is rounded up, maxUnavailable down; both zero becomes one unavailable (deployment_util.go ResolveFenceposts). */
export function fenceposts(deployment: Deployment): { readonly surge: number; readonly unavailable: number } {
  const replicas = deployment.spec.replicas ?? 1;
  const rolling = deployment.spec.strategy?.rollingUpdate;
  const surge = resolve(rolling?.maxSurge, replicas, true);
  const unavailable = Math.min(replicas, resolve(rolling?.maxUnavailable, replicas, false));
  return surge === 0 && unavailable === 0 ? { surge, unavailable: 1 } : { surge, unavailable };
}

/**
 * The Deployment controller: RollingUpdate with its two limits, Recreate (waits until every old pod object is gone or
 * finished), scale, and the Progressing and Available conditions. Sources: pkg/controller/deployment.
 */
export class DeploymentController implements Controller {
  readonly name = 'deployment';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    for (const deployment of context.store.list('deployments')) {
      if (deployment.metadata.deletionTimestamp !== undefined) continue;
      const sets = context.store
        .list('replicasets', deployment.metadata.namespace ?? '')
        .filter((set) => controllerOf(set)?.uid === deployment.metadata.uid);
      this.#sync(context, deployment, sets);
      this.#report(context, deployment);
    }
  }

  #sync(context: Context, deployment: Deployment, sets: readonly ReplicaSet[]): void {
    const wanted = withoutHash(deployment.spec.template);
    const current = sets.find((set) => same(withoutHash(set.spec.template), wanted));
    const old = sets.filter((set) => set !== current);
    if (deployment.spec.strategy?.type === 'Recreate') this.#recreate(context, deployment, current, old);
    else this.#roll(context, deployment, current, old);
  }

  #recreate(
    context: Context,
    deployment: Deployment,
    current: ReplicaSet | undefined,
    old: readonly ReplicaSet[],
  ): void {
    const { store } = context;
    for (const set of old) this.#scale(context, deployment, set, 0);
    const ids = new Set(old.map((set) => set.metadata.uid));
    const remains = store
      .list('pods', deployment.metadata.namespace ?? '')
      .some(
        (pod) =>
          ids.has(controllerOf(pod)?.uid ?? '') && pod.status?.phase !== 'Failed' && pod.status?.phase !== 'Succeeded',
      );
    if (remains) return;
    const replicas = deployment.spec.replicas ?? 1;
    if (current === undefined) this.#make(context, deployment, replicas, old);
    else this.#scale(context, deployment, current, replicas);
  }

  #roll(context: Context, deployment: Deployment, current: ReplicaSet | undefined, old: readonly ReplicaSet[]): void {
    const replicas = deployment.spec.replicas ?? 1;
    const { surge, unavailable } = fenceposts(deployment);
    const oldTotal = old.reduce((sum, set) => sum + (set.spec.replicas ?? 0), 0);
    const now = current?.spec.replicas ?? 0;
    const room = Math.max(0, replicas + surge - oldTotal - now);
    const target = now > replicas ? replicas : now + Math.min(room, replicas - now);
    if (current === undefined) {
      this.#make(context, deployment, target, old);
      return;
    }
    if (target !== now) {
      this.#scale(context, deployment, current, target);
      return;
    }
    const minAvailable = replicas - unavailable;
    const available = (set: ReplicaSet): number => set.status?.availableReplicas ?? 0;
    const newUnavailable = now - available(current);
    let mayGo = oldTotal + now - minAvailable - newUnavailable;
    for (const set of old) {
      if (mayGo <= 0) break;
      const unhealthy = Math.min(mayGo, (set.spec.replicas ?? 0) - Math.min(available(set), set.spec.replicas ?? 0));
      if (unhealthy <= 0) continue;
      this.#scale(context, deployment, set, (set.spec.replicas ?? 0) - unhealthy);
      mayGo -= unhealthy;
    }
    let spare = old.reduce((sum, set) => sum + available(set), 0) + available(current) - minAvailable;
    for (const set of old) {
      const fresh = context.store.get('replicasets', set.metadata.namespace, set.metadata.name);
      const size = fresh?.spec.replicas ?? 0;
      const drop = Math.min(spare, size, mayGo);
      if (drop <= 0 || fresh === undefined) continue;
      this.#scale(context, deployment, fresh, size - drop);
      spare -= drop;
      mayGo -= drop;
    }
  }

  #make(context: Context, deployment: Deployment, replicas: number, old: readonly ReplicaSet[]): void {
    const revisions = old.map((set) => Number(set.metadata.annotations?.['deployment.kubernetes.io/revision'] ?? '0'));
    const revision = Math.max(0, ...revisions) + 1;
    const set = context.store.create('replicasets', replicaSetFor(deployment, replicas, revision));
    context.store.mutate('deployments', deployment.metadata.namespace, deployment.metadata.name, (draft) => {
      draft.metadata.annotations = {
        ...draft.metadata.annotations,
        'deployment.kubernetes.io/revision': String(revision),
      };
    });
    this.#tell(context, deployment, `Scaled up replica set ${set.metadata.name} from 0 to ${replicas}`);
  }

  #scale(context: Context, deployment: Deployment, set: ReplicaSet, replicas: number): void {
    const was = set.spec.replicas ?? 0;
    if (was === replicas) return;
    context.store.mutate('replicasets', set.metadata.namespace, set.metadata.name, (draft) => {
      draft.spec.replicas = replicas;
    });
    this.#tell(
      context,
      deployment,
      `Scaled ${replicas > was ? 'up' : 'down'} replica set ${set.metadata.name} from ${was} to ${replicas}`,
    );
  }

  #tell(context: Context, deployment: Deployment, message: string): void {
    context.recorder.tell({
      on: deployment,
      type: 'Normal',
      reason: 'ScalingReplicaSet',
      message,
      component: 'deployment-controller',
    });
  }

  #report(context: Context, was: Deployment): void {
    const { store, clock } = context;
    const deployment = store.get('deployments', was.metadata.namespace, was.metadata.name);
    if (deployment === undefined) return;
    const now = clock.now();
    const stamp = rfc3339(now);
    const sets = store
      .list('replicasets', deployment.metadata.namespace ?? '')
      .filter((set) => controllerOf(set)?.uid === deployment.metadata.uid);
    const wanted = withoutHash(deployment.spec.template);
    const current = sets.find((set) => same(withoutHash(set.spec.template), wanted));
    const sum = (pick: (set: ReplicaSet) => number | undefined): number =>
      sets.reduce((total, set) => total + (pick(set) ?? 0), 0);
    const total = sum((set) => set.status?.replicas);
    const available = sum((set) => set.status?.availableReplicas);
    const ready = sum((set) => set.status?.readyReplicas);
    const updated = current?.status?.replicas ?? 0;
    const replicas = deployment.spec.replicas ?? 1;
    const { unavailable } =
      deployment.spec.strategy?.type === 'Recreate' ? { unavailable: replicas } : fenceposts(deployment);
    const old = deployment.status ?? {};
    const moved =
      updated > (old.updatedReplicas ?? 0) ||
      total - updated < (old.replicas ?? 0) - (old.updatedReplicas ?? 0) ||
      ready > (old.readyReplicas ?? 0) ||
      available > (old.availableReplicas ?? 0);
    const done = updated === replicas && total === replicas && available >= replicas;
    const enough = available >= replicas - unavailable;
    const progressing = this.#progress(deployment, current, { done, moved, settled: total === updated }, now);
    const deadline = conditionOf(deployment.status?.conditions, 'Progressing');
    if (deadline?.status === 'True' && deadline.reason !== 'NewReplicaSetAvailable') {
      context.wakeAt(
        now +
          Math.max(1, (deployment.spec.progressDeadlineSeconds ?? 600) * 1000 - ageOf(updateTime(deadline), now)) +
          1,
      );
    }
    store.mutate('deployments', deployment.metadata.namespace, deployment.metadata.name, (draft) => {
      const conditions = draft.status?.conditions ?? [];
      setCondition(conditions, {
        type: 'Available',
        status: enough ? 'True' : 'False',
        reason: enough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
        message: enough ? 'Deployment has minimum availability.' : 'Deployment does not have minimum availability.',
        lastTransitionTime: stamp,
        lastUpdateTime: stamp,
      });
      if (progressing !== undefined) {
        setCondition(conditions, { ...progressing, lastTransitionTime: stamp, lastUpdateTime: stamp });
        const condition = conditionOf(conditions, 'Progressing');
        if (moved && condition !== undefined && condition.reason === 'ReplicaSetUpdated')
          condition['lastUpdateTime'] = stamp;
      }
      const missing = Math.max(0, Math.max(total, replicas) - available);
      draft.status = {
        observedGeneration: deployment.metadata.generation ?? 1,
        replicas: total === 0 ? undefined : total,
        updatedReplicas: updated === 0 ? undefined : updated,
        readyReplicas: ready === 0 ? undefined : ready,
        availableReplicas: available === 0 ? undefined : available,
        unavailableReplicas: missing === 0 ? undefined : missing,
        conditions,
      };
    });
  }

  #progress(
    deployment: Deployment,
    current: ReplicaSet | undefined,
    state: { readonly done: boolean; readonly moved: boolean; readonly settled: boolean },
    now: number,
  ): Condition | undefined {
    const about =
      current === undefined ? `Deployment "${deployment.metadata.name}"` : `ReplicaSet "${current.metadata.name}"`;
    const known = conditionOf(deployment.status?.conditions, 'Progressing');
    if (state.done)
      return {
        type: 'Progressing',
        status: 'True',
        reason: 'NewReplicaSetAvailable',
        message: `${about} has successfully progressed.`,
      };
    // A rollout that had been completed is not judged again when a pod of it becomes unavailable later.
    if (known?.reason === 'NewReplicaSetAvailable' && state.settled && !isNewer(deployment)) return undefined;
    if (state.moved || known === undefined || known.reason === 'NewReplicaSetAvailable') {
      return { type: 'Progressing', status: 'True', reason: 'ReplicaSetUpdated', message: `${about} is progressing.` };
    }
    const late =
      known.status === 'True' &&
      ageOf(updateTime(known), now) > (deployment.spec.progressDeadlineSeconds ?? 600) * 1000;
    if (!late) return undefined;
    return {
      type: 'Progressing',
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: `${about} has timed out progressing.`,
    };
  }
}

function isNewer(deployment: Deployment): boolean {
  return (deployment.metadata.generation ?? 1) !== (deployment.status?.observedGeneration ?? 0);
}

function updateTime(condition: Condition): string | undefined {
  const value = condition['lastUpdateTime'];
  return typeof value === 'string' ? value : condition.lastTransitionTime;
}

/** The ReplicaSet controller: as many active pods as asked; a pod that is being deleted does not count. */
export class ReplicaSetController implements Controller {
  readonly name = 'replicaset';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    for (const set of context.store.list('replicasets')) {
      const owned = context.store
        .list('pods', set.metadata.namespace ?? '')
        .filter((pod) => controllerOf(pod)?.uid === set.metadata.uid);
      if (set.metadata.deletionTimestamp === undefined) this.#sync(context, set, owned.filter(isActive));
      this.#report(context, set);
    }
  }

  #sync(context: Context, set: ReplicaSet, active: readonly Pod[]): void {
    const { store, recorder } = context;
    const missing = (set.spec.replicas ?? 1) - active.length;
    const { template } = set.spec;
    if (template === undefined) return;
    for (let i = 0; i < missing; i += 1) {
      const pod = store.create('pods', {
        metadata: {
          generateName: `${set.metadata.name}-`,
          namespace: set.metadata.namespace,
          labels: template.metadata?.labels ?? {},
          ...(template.metadata?.annotations === undefined ? {} : { annotations: template.metadata.annotations }),
          ownerReferences: [ownedBy(set)],
        },
        spec: structuredClone(template.spec),
      });
      recorder.tell({
        on: set,
        type: 'Normal',
        reason: 'SuccessfulCreate',
        message: `Created pod: ${pod.metadata.name}`,
        component: 'replicaset-controller',
      });
    }
    const rank = (pod: Pod): number =>
      pod.spec.nodeName === undefined ? 0 : pod.status?.phase === 'Pending' ? 1 : isPodReady(pod) ? 3 : 2;
    const surplus = [...active].sort((a, b) => rank(a) - rank(b)).slice(0, Math.max(0, -missing));
    for (const pod of surplus) {
      store.remove('pods', pod.metadata.namespace, pod.metadata.name);
      recorder.tell({
        on: set,
        type: 'Normal',
        reason: 'SuccessfulDelete',
        message: `Deleted pod: ${pod.metadata.name}`,
        component: 'replicaset-controller',
      });
    }
  }

  #report(context: Context, set: ReplicaSet): void {
    const { store } = context;
    const active = store
      .list('pods', set.metadata.namespace ?? '')
      .filter((pod) => controllerOf(pod)?.uid === set.metadata.uid && isActive(pod));
    const ready = active.filter(isPodReady).length;
    store.mutate('replicasets', set.metadata.namespace, set.metadata.name, (draft) => {
      draft.status = {
        replicas: active.length,
        fullyLabeledReplicas: active.length === 0 ? undefined : active.length,
        readyReplicas: ready === 0 ? undefined : ready,
        availableReplicas: ready === 0 ? undefined : ready,
        observedGeneration: set.metadata.generation ?? 1,
      };
    });
  }
}

/** The DaemonSet controller in the small: one pod on every node that exists, pinned to it. */
export class DaemonSetController implements Controller {
  readonly name = 'daemonset';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    const { store } = context;
    const nodes = store.list('nodes');
    for (const set of store.list('daemonsets')) {
      const owned = store
        .list('pods', set.metadata.namespace ?? '')
        .filter((pod) => controllerOf(pod)?.uid === set.metadata.uid);
      for (const node of nodes) {
        if (
          set.metadata.deletionTimestamp !== undefined ||
          owned.some((pod) => pod.spec.nodeName === node.metadata.name)
        )
          continue;
        store.create('pods', {
          metadata: {
            generateName: `${set.metadata.name}-`,
            namespace: set.metadata.namespace,
            labels: set.spec.template.metadata?.labels ?? {},
            ownerReferences: [ownedBy(set)],
          },
          spec: { ...structuredClone(set.spec.template.spec), nodeName: node.metadata.name },
        });
      }
      const ready = owned.filter((pod) => isPodReady(pod)).length;
      store.mutate('daemonsets', set.metadata.namespace, set.metadata.name, (draft) => {
        draft.status = {
          currentNumberScheduled: owned.length,
          desiredNumberScheduled: nodes.length,
          numberMisscheduled: 0,
          numberReady: ready,
          numberAvailable: ready,
          observedGeneration: set.metadata.generation ?? 1,
        };
      });
    }
  }
}
