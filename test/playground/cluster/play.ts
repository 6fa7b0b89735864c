import { Cluster } from '../../../src/playground/cluster/cluster.ts';
import type { ClusterSettings } from '../../../src/playground/cluster/controllers/context.ts';
import { isPodReady } from '../../../src/playground/cluster/controllers/lookup.ts';
import type { Attachment, KubeObject, Pod, Volume } from '../../../src/playground/cluster/kinds.ts';
import { resourceTable } from '../../../src/playground/cluster/kinds.ts';
import { findScenario } from '../../../src/playground/cluster/scenarios/index.ts';
import { oneContainer, World } from '../../../src/playground/cluster/scenarios/world.ts';

/** A clock that moves only when told to. */
export class FakeClock {
  #now = Date.parse('2026-11-30T12:00:00Z');

  now(): number {
    return this.#now;
  }

  advance(ms: number): void {
    this.#now += ms;
  }
}

/** A cluster with its own clock, and the questions that tests ask it. */
export class Play {
  readonly clock = new FakeClock();
  readonly cluster: Cluster;

  constructor(settings: Partial<ClusterSettings> = {}) {
    this.cluster = new Cluster({ clock: this.clock, seed: 11, settings });
  }

  /** A healthy cluster with the nodes n1, n2, n3 in zone z1 and namespace `shop`. */
  static healthy(settings: Partial<ClusterSettings> = {}): Play {
    const play = new Play(settings);
    play.cluster.reset();
    const nodes = ['n1', 'n2', 'n3'].map((name) => ({ name, zone: 'z1' }));
    new World(play.cluster).base(nodes, ['shop', 'other']);
    play.cluster.settle();
    return play;
  }

  /** A scenario, freshly loaded. */
  static scenario(id: string): Play {
    const play = new Play();
    const scenario = findScenario(id);
    if (scenario === undefined) throw new Error(`no scenario ${id}`);
    play.cluster.reset(scenario.settings);
    scenario.setup(play.cluster);
    play.cluster.settle();
    return play;
  }

  get store(): Cluster['store'] {
    return this.cluster.store;
  }

  /** Lets simulated time pass in steps, with the controllers at work. */
  run(ms: number, step = 2000): void {
    for (let left = ms; left > 0; left -= step) {
      this.clock.advance(Math.min(step, left));
      this.cluster.settle();
    }
  }

  /** Creates a claim of the default class. */
  claim(name: string, namespace = 'shop', spec: Readonly<Record<string, unknown>> = {}): void {
    this.store.create('persistentvolumeclaims', {
      metadata: { name, namespace },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
    });
  }

  /** Creates a pod that mounts a claim. */
  pod(name: string, claim: string, spec: Readonly<Record<string, unknown>> = {}, namespace = 'shop'): void {
    this.store.create('pods', {
      metadata: { name, namespace, labels: { app: name } },
      spec: { ...oneContainer('sim/pause:1', claim), ...spec },
    });
  }

  /** A pod by name. */
  getPod(name: string, namespace = 'shop'): Pod | undefined {
    return this.store.get('pods', namespace, name);
  }

  /** Names of Ready pods of a namespace. */
  ready(namespace = 'shop'): readonly string[] {
    return this.store
      .list('pods', namespace)
      .filter(isPodReady)
      .map((pod) => pod.metadata.name);
  }

  /** The volume of a claim; the claim must be bound. */
  volumeOf(claim: string, namespace = 'shop'): Volume {
    const bound = this.store.need('persistentvolumeclaims', namespace, claim);
    return this.store.need('persistentvolumes', undefined, bound.spec.volumeName ?? '');
  }

  /** Attachments on a node. */
  attachments(node?: string): readonly Attachment[] {
    return this.store
      .list('volumeattachments')
      .filter((attachment) => node === undefined || attachment.spec.nodeName === node);
  }

  /** Messages of the events with a reason, oldest first. */
  messages(reason: string, name?: string): readonly string[] {
    return this.store
      .list('events')
      .filter((event) => event.reason === reason && (name === undefined || event.involvedObject.name === name))
      .map((event) => event.message ?? '');
  }

  /** Adds the out-of-service taint, as the repair does. */
  taint(node: string): void {
    this.store.mutate('nodes', undefined, node, (draft) => {
      draft.spec ??= {};
      draft.spec.taints = [
        ...(draft.spec.taints ?? []),
        { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' },
      ];
    });
  }

  /** Sets a volume's policy to Retain. */
  retain(volume: string): void {
    this.store.mutate('persistentvolumes', undefined, volume, (draft) => {
      draft.spec.persistentVolumeReclaimPolicy = 'Retain';
    });
  }

  /** All objects as text, without what a living cluster always changes: leases, events, heartbeats, versions. */
  picture(): readonly string[] {
    return resourceTable
      .filter(({ resource }) => resource !== 'leases' && resource !== 'events')
      .flatMap(({ resource }) =>
        this.store.list(resource).map((object: KubeObject) => `${resource} ${describe(object)}`),
      );
  }
}

function describe(object: KubeObject): string {
  return JSON.stringify(object, (key: string, value: unknown) =>
    key === 'resourceVersion' || key === 'lastHeartbeatTime' ? undefined : value,
  );
}
