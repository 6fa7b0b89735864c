import type { Node, Pod, Taint } from '../kinds.ts';
import { millis, rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { conditionOf, isNodeReady, setCondition, tolerates } from './lookup.ts';

const UNREACHABLE = 'node.kubernetes.io/unreachable';
const NOT_READY = 'node.kubernetes.io/not-ready';

/**
 * Node lifecycle and taint eviction: a node whose lease is not renewed becomes Ready=Unknown with the unreachable
 * taints, and pods that do not tolerate a NoExecute taint (any longer) are deleted with their own grace. On a silent
 * node their objects stay. Sources: pkg/controller/nodelifecycle, pkg/controller/tainteviction.
 */
export class NodeLifecycle implements Controller {
  readonly name = 'node-lifecycle';
  readonly component = 'kube-controller-manager' as const;
  /** When a taint without `timeAdded` was first seen. */
  readonly #seen = new Map<string, number>();

  reconcile(context: Context): void {
    for (const node of context.store.all('nodes')) {
      this.#watchHealth(context, node);
      const current = context.store.get('nodes', undefined, node.metadata.name);
      if (current !== undefined) this.#evict(context, current);
    }
  }

  #watchHealth(context: Context, node: Node): void {
    const { store, clock, settings } = context;
    const name = node.metadata.name;
    const now = clock.now();
    const renewed = millis(store.get('leases', 'kube-node-lease', name)?.spec?.renewTime);
    const heard = renewed ?? millis(node.metadata.creationTimestamp) ?? now;
    const ready = conditionOf(node.status?.conditions, 'Ready');
    if (now - heard <= settings.nodeGraceMs) {
      context.wakeAt(heard + settings.nodeGraceMs + 1);
      if (
        ready?.status === 'True' &&
        node.spec?.taints?.some((taint) => taint.key === UNREACHABLE || taint.key === NOT_READY) === true
      ) {
        store.mutate('nodes', undefined, name, (draft) => {
          if (draft.spec?.taints !== undefined) {
            draft.spec.taints = draft.spec.taints.filter(
              (taint) => taint.key !== UNREACHABLE && taint.key !== NOT_READY,
            );
          }
        });
      }
      return;
    }
    if (ready?.status === 'Unknown') return;
    const stamp = rfc3339(now);
    store.mutate('nodes', undefined, name, (draft) => {
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, {
        type: 'Ready',
        status: 'Unknown',
        reason: 'NodeStatusUnknown',
        message: 'Kubelet stopped posting node status.',
        lastTransitionTime: stamp,
      });
      draft.spec ??= {};
      const others = (draft.spec.taints ?? []).filter((taint) => taint.key !== UNREACHABLE);
      draft.spec.taints = [
        ...others,
        { key: UNREACHABLE, effect: 'NoSchedule', timeAdded: stamp },
        { key: UNREACHABLE, effect: 'NoExecute', timeAdded: stamp },
      ];
    });
    context.recorder.tell({
      on: node,
      type: 'Normal',
      reason: 'NodeNotReady',
      message: `Node ${name} status is now: NodeNotReady`,
      component: 'node-controller',
    });
    for (const pod of store.all('pods')) if (pod.spec.nodeName === name) this.#markPod(context, pod, stamp);
  }

  #markPod(context: Context, pod: Pod, stamp: string): void {
    if (conditionOf(pod.status?.conditions, 'Ready')?.status !== 'True') return;
    context.store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      setCondition(draft.status?.conditions ?? [], { type: 'Ready', status: 'False', lastTransitionTime: stamp });
    });
    context.recorder.tell({
      on: pod,
      type: 'Warning',
      reason: 'NodeNotReady',
      message: 'Node is not ready',
      component: 'node-controller',
    });
  }

  #evict(context: Context, node: Node): void {
    const taints = (node.spec?.taints ?? []).filter((taint) => taint.effect === 'NoExecute');
    if (taints.length === 0) return;
    const { store, clock } = context;
    const now = clock.now();
    for (const pod of store.all('pods')) {
      if (pod.spec.nodeName !== node.metadata.name || pod.metadata.deletionTimestamp !== undefined) continue;
      const due = Math.min(...taints.map((taint) => this.#dueAt(node, taint, pod, now)));
      if (due > now) {
        if (due !== Number.POSITIVE_INFINITY) context.wakeAt(due);
        continue;
      }
      context.recorder.tell({
        on: pod,
        type: 'Normal',
        reason: 'TaintManagerEviction',
        message: `Marking for deletion Pod ${pod.metadata.namespace ?? ''}/${pod.metadata.name}`,
        component: 'taint-eviction-controller',
        withoutUid: true,
      });
      store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
        draft.status ??= {};
        draft.status.conditions ??= [];
        setCondition(draft.status.conditions, {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'DeletionByTaintManager',
          message: 'Taint manager: deleting due to NoExecute taint',
          lastTransitionTime: rfc3339(now),
        });
      });
      store.remove('pods', pod.metadata.namespace, pod.metadata.name);
    }
  }

  #dueAt(node: Node, taint: Taint, pod: Pod, now: number): number {
    const key = `${node.metadata.uid}|${taint.key}|${taint.value ?? ''}`;
    const added = millis(taint.timeAdded) ?? this.#seen.get(key) ?? now;
    if (!this.#seen.has(key)) this.#seen.set(key, added);
    const toleration = tolerates(pod.spec.tolerations, taint);
    if (toleration === undefined) return now;
    return toleration.tolerationSeconds === undefined
      ? Number.POSITIVE_INFINITY
      : added + toleration.tolerationSeconds * 1000;
  }
}

/** Pod garbage collection: pods of nodes that do not exist, and terminating pods of nodes that are out of service. */
export class PodGarbage implements Controller {
  readonly name = 'podgc';
  readonly component = 'kube-controller-manager' as const;
  readonly #missingSince = new Map<string, number>();
  #nextRun = 0;

  reconcile(context: Context): void {
    const { store, clock, settings } = context;
    const now = clock.now();
    const due = now >= this.#nextRun;
    if (due) this.#nextRun = now + settings.podGcPeriodMs;
    for (const pod of store.list('pods')) {
      const nodeName = pod.spec.nodeName;
      if (nodeName === undefined) continue;
      const node = store.get('nodes', undefined, nodeName);
      if (node !== undefined) {
        this.#missingSince.delete(nodeName);
        const outOfService =
          node.spec?.taints?.some((taint) => taint.key === 'node.kubernetes.io/out-of-service') === true;
        if (pod.metadata.deletionTimestamp === undefined || isNodeReady(node) || !outOfService) continue;
        if (due) this.#force(context, pod, 'PodGC: node is out of service');
        else context.wakeAt(this.#nextRun);
        continue;
      }
      const since = this.#missingSince.get(nodeName) ?? now;
      this.#missingSince.set(nodeName, since);
      if (due && now - since >= settings.podGcQuarantineMs) this.#force(context, pod, 'PodGC: node no longer exists');
      else context.wakeAt(Math.max(this.#nextRun, since + settings.podGcQuarantineMs));
    }
  }

  #force(context: Context, pod: Pod, message: string): void {
    const { name, namespace, uid } = pod.metadata;
    context.store.mutate('pods', namespace, name, (draft) => {
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByPodGC',
        message,
        lastTransitionTime: rfc3339(context.clock.now()),
      });
      if (draft.status.phase === 'Pending' || draft.status.phase === 'Running') draft.status.phase = 'Failed';
    });
    context.store.remove('pods', namespace, name, { gracePeriodSeconds: 0, preconditions: { uid } });
  }
}
