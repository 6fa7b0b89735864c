import type { Claim, Node, Pod, Volume } from '../kinds.ts';
import { labelsMatch, nodeSelectorMatches } from '../selectors.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { claimNames, isTerminated, setCondition, tolerates, volumeOf } from './lookup.ts';
import { ZONE_KEY } from './provisioner.ts';

const SELECTED_NODE = 'volume.kubernetes.io/selected-node';

interface Claims {
  readonly bound: readonly Volume[];
  /** Unbound claims that wait for the choice of a node. */
  readonly waiting: readonly Claim[];
}

/**
 * The scheduler, as far as volumes decide: claims first (bound, not deleting), then each node by cordon, taints,
 * selectors, volume affinity, attach limits. Its verdict stands in the pod's PodScheduled condition, which does not
 * expire. Sources: pkg/scheduler/framework/plugins/{volumebinding,volumerestrictions,nodevolumelimits}.
 */
export class Scheduler implements Controller {
  readonly name = 'scheduler';
  readonly component = 'kube-scheduler' as const;

  reconcile(context: Context): void {
    for (const pod of context.store.list('pods')) {
      if (pod.spec.nodeName !== undefined || pod.metadata.deletionTimestamp !== undefined) continue;
      if (pod.status?.phase !== 'Pending' || (pod.spec.schedulerName ?? 'default-scheduler') !== 'default-scheduler')
        continue;
      this.#schedule(context, pod);
    }
  }

  #schedule(context: Context, pod: Pod): void {
    const { store } = context;
    const nodes = store.list('nodes');
    const all = `0/${nodes.length} nodes are available: `;
    const claims = this.#claims(context, pod);
    if (typeof claims === 'string') {
      this.#refuse(context, pod, `${all}${claims}. not found`);
      return;
    }
    const reasons = new Map<string, number>();
    const fitting: Node[] = [];
    for (const node of nodes) {
      const reason = this.#filter(context, pod, node, claims);
      if (reason === undefined) fitting.push(node);
      else reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    }
    const node = this.#pick(context, fitting, claims);
    if (node === undefined) {
      const texts = [...reasons].map(([reason, count]) => `${count} ${reason}`).sort();
      this.#refuse(
        context,
        pod,
        `${all}${texts.join(', ')}. preemption: 0/${nodes.length} nodes are available: ${nodes.length} Preemption is not helpful for scheduling.`,
      );
      return;
    }
    if (claims.waiting.length > 0) {
      for (const claim of claims.waiting) {
        store.mutate('persistentvolumeclaims', claim.metadata.namespace, claim.metadata.name, (draft) => {
          draft.metadata.annotations = { ...draft.metadata.annotations, [SELECTED_NODE]: node.metadata.name };
        });
      }
      return;
    }
    this.#bind(context, pod, node);
  }

  #bind(context: Context, pod: Pod, node: Node): void {
    const { store, clock, recorder } = context;
    const stamp = rfc3339(clock.now());
    const zone = node.metadata.labels?.[ZONE_KEY];
    store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      draft.spec.nodeName = node.metadata.name;
      if (zone !== undefined) draft.metadata.labels = { ...draft.metadata.labels, [ZONE_KEY]: zone };
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, { type: 'PodScheduled', status: 'True', lastTransitionTime: stamp });
    });
    recorder.tell({
      on: pod,
      type: 'Normal',
      reason: 'Scheduled',
      message: `Successfully assigned ${pod.metadata.namespace ?? ''}/${pod.metadata.name} to ${node.metadata.name}`,
      component: 'default-scheduler',
      modern: true,
    });
  }

  #refuse(context: Context, pod: Pod, message: string): void {
    const { store, clock, recorder } = context;
    store.mutate('pods', pod.metadata.namespace, pod.metadata.name, (draft) => {
      draft.status ??= {};
      draft.status.conditions ??= [];
      setCondition(draft.status.conditions, {
        type: 'PodScheduled',
        status: 'False',
        reason: 'Unschedulable',
        message,
        lastTransitionTime: rfc3339(clock.now()),
      });
    });
    recorder.tell({
      on: pod,
      type: 'Warning',
      reason: 'FailedScheduling',
      message,
      component: 'default-scheduler',
      modern: true,
    });
  }

  /** The pod's claims sorted, or the reason why no node can do. */
  #claims(context: Context, pod: Pod): Claims | string {
    const { store } = context;
    const bound: Volume[] = [];
    const waiting: Claim[] = [];
    let immediate = false;
    for (const name of claimNames(pod)) {
      const claim = store.get('persistentvolumeclaims', pod.metadata.namespace, name);
      if (claim === undefined) return `persistentvolumeclaim "${name}" not found`;
      if (claim.status?.phase === 'Lost') {
        return `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${claim.spec.volumeName ?? ''}"`;
      }
      if (claim.metadata.deletionTimestamp !== undefined) return `persistentvolumeclaim "${name}" is being deleted`;
      const volume = volumeOf(store, claim);
      if (volume !== undefined && claim.status?.phase === 'Bound') {
        bound.push(volume);
        continue;
      }
      const storageClass = store.get('storageclasses', undefined, claim.spec.storageClassName ?? '');
      if (storageClass?.volumeBindingMode === 'WaitForFirstConsumer') waiting.push(claim);
      else immediate = true;
    }
    return immediate ? 'pod has unbound immediate PersistentVolumeClaims' : { bound, waiting };
  }

  #filter(context: Context, pod: Pod, node: Node, claims: Claims): string | undefined {
    const { store } = context;
    if (node.spec?.unschedulable === true) return 'node(s) were unschedulable';
    const taint = node.spec?.taints?.find(
      (entry) => entry.effect !== 'PreferNoSchedule' && tolerates(pod.spec.tolerations, entry) === undefined,
    );
    if (taint !== undefined) return `node(s) had untolerated taint(s)`;
    const labels = node.metadata.labels;
    const selector = { matchLabels: pod.spec.nodeSelector ?? {} };
    const affinity = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
    if (!labelsMatch(selector, labels) || !nodeSelectorMatches(affinity, labels))
      return "node(s) didn't match Pod's node affinity/selector";
    if (this.#sharesReadWriteOncePod(context, pod)) {
      return 'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod';
    }
    if (this.#antiAffinity(context, pod, node)) return "node(s) didn't match pod anti-affinity rules";
    if (claims.bound.some((volume) => !nodeSelectorMatches(volume.spec.nodeAffinity?.required, labels))) {
      return "node(s) didn't match PersistentVolume's node affinity";
    }
    if (claims.waiting.some((claim) => !this.#topologyAllows(context, claim, node))) {
      return "node(s) didn't find available persistent volumes to bind";
    }
    const csiNode = store.get('csinodes', undefined, node.metadata.name);
    const driver = csiNode?.spec.drivers?.find((entry) => entry.name === context.settings.driver);
    const limit = driver?.allocatable?.count;
    if (limit !== undefined) {
      const here = store
        .all('volumeattachments')
        .filter((attachment) => attachment.spec.nodeName === node.metadata.name);
      const own = new Set(here.map((attachment) => attachment.spec.source.persistentVolumeName));
      const fresh = claims.bound.filter((volume) => !own.has(volume.metadata.name)).length + claims.waiting.length;
      if (here.length + fresh > limit) return 'node(s) exceed max volume count';
    }
    return undefined;
  }

  #topologyAllows(context: Context, claim: Claim, node: Node): boolean {
    const terms = context.store.get('storageclasses', undefined, claim.spec.storageClassName ?? '')?.allowedTopologies;
    if (terms === undefined) return true;
    return terms.some((term) =>
      (term.matchLabelExpressions ?? []).every((expression) =>
        expression.values.includes(node.metadata.labels?.[expression.key] ?? ''),
      ),
    );
  }

  #sharesReadWriteOncePod(context: Context, pod: Pod): boolean {
    const { store } = context;
    const names = claimNames(pod).filter((name) =>
      store.get('persistentvolumeclaims', pod.metadata.namespace, name)?.spec.accessModes?.includes('ReadWriteOncePod'),
    );
    if (names.length === 0) return false;
    return store
      .all('pods')
      .some(
        (other) =>
          other.metadata.uid !== pod.metadata.uid &&
          other.metadata.namespace === pod.metadata.namespace &&
          other.spec.nodeName !== undefined &&
          claimNames(other).some((name) => names.includes(name)),
      );
  }

  #antiAffinity(context: Context, pod: Pod, node: Node): boolean {
    const terms = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
    const { store } = context;
    return terms.some((term) => {
      const domain = node.metadata.labels?.[term.topologyKey];
      return store.all('pods').some((other) => {
        if (
          other.metadata.uid === pod.metadata.uid ||
          other.metadata.namespace !== pod.metadata.namespace ||
          isTerminated(other)
        )
          return false;
        if (!labelsMatch(term.labelSelector, other.metadata.labels)) return false;
        const home = other.spec.nodeName === undefined ? undefined : store.get('nodes', undefined, other.spec.nodeName);
        return home !== undefined && home.metadata.labels?.[term.topologyKey] === domain;
      });
    });
  }

  /** The node with the fewest pods; a node that was chosen for a claim before stays the choice. */
  #pick(context: Context, fitting: readonly Node[], claims: Claims): Node | undefined {
    const chosen = claims.waiting
      .map((claim) => claim.metadata.annotations?.[SELECTED_NODE])
      .find((name) => name !== undefined);
    const before = fitting.find((node) => node.metadata.name === chosen);
    if (before !== undefined) return before;
    const load = (node: Node): number =>
      context.store.all('pods').filter((pod) => pod.spec.nodeName === node.metadata.name && !isTerminated(pod)).length;
    return [...fitting].sort((a, b) => load(a) - load(b) || a.metadata.name.localeCompare(b.metadata.name))[0];
  }
}
