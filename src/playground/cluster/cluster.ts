import { Backend } from './backend.ts';
import { AttachDetach } from './controllers/attach-detach.ts';
import { ExternalAttacher } from './controllers/attacher.ts';
import type { ClusterSettings, Component, Context, Controller } from './controllers/context.ts';
import { DaemonSetController, DeploymentController, ReplicaSetController } from './controllers/deployment.ts';
import { GarbageCollector, Housekeeping } from './controllers/garbage.ts';
import { JobController } from './controllers/job.ts';
import { Kubelet } from './controllers/kubelet.ts';
import { NodeLifecycle, PodGarbage } from './controllers/node-lifecycle.ts';
import { PersistentVolumeController } from './controllers/persistent-volume.ts';
import { ClaimProtection, VolumeProtection } from './controllers/protection.ts';
import { ExternalProvisioner } from './controllers/provisioner.ts';
import { ExternalResizer } from './controllers/resizer.ts';
import { Scheduler } from './controllers/scheduler.ts';
import { StatefulSetController } from './controllers/stateful-set.ts';
import { Recorder } from './recorder.ts';
import { isApiError, Store } from './store.ts';
import type { SimClock, SimRandom } from './time.ts';
import { seededRandom } from './time.ts';

/** What a cluster is made of. */
export interface ClusterOptions {
  readonly clock: SimClock;
  /** Seed of all ids and generated names. */
  readonly seed: number;
  readonly settings?: Partial<ClusterSettings>;
}

/** A healthy present-day cluster with the upstream default timers. */
export const defaultSettings: Omit<ClusterSettings, 'clusterId'> = {
  version: 'v1.37.2',
  driver: 'disk.csi.example.com',
  disableForceDetach: false,
  forceDetachMs: 360_000,
  nodeGraceMs: 50_000,
  podGcPeriodMs: 20_000,
  podGcQuarantineMs: 40_000,
  attachWaitMs: 120_000,
  provisionerVersion: 'v5.3.0',
  honorReclaimPolicy: true,
};

const MOST_PASSES = 200;

function freshControllers(): readonly Controller[] {
  return [
    new Housekeeping(),
    new Kubelet(),
    new NodeLifecycle(),
    new PodGarbage(),
    new DeploymentController(),
    new ReplicaSetController(),
    new StatefulSetController(),
    new DaemonSetController(),
    new JobController(),
    new PersistentVolumeController(),
    new ExternalProvisioner(),
    new Scheduler(),
    new AttachDetach(),
    new ExternalAttacher(),
    new ExternalResizer(),
    new ClaimProtection(),
    new VolumeProtection(),
    new GarbageCollector(),
  ];
}

/**
 * The simulated cluster without its HTTP side: store, backend and controllers. Each pass lets every controller move one
 * step; when a pass changes nothing and no timer is due, nothing runs until somebody writes.
 */
export class Cluster {
  readonly store: Store;
  readonly backend: Backend;
  readonly clock: SimClock;
  readonly random: SimRandom;
  /** uid of the kube-system namespace, the cluster's identity; it stays when another scenario is loaded. */
  readonly uid: string;
  readonly #base: Partial<ClusterSettings>;
  readonly #silent = new Set<string>();
  readonly #stopped = new Set<Component>();
  #recorder: Recorder;
  #controllers = freshControllers();
  #settings: ClusterSettings;
  #wake = 0;
  #seen = -1;

  constructor(options: ClusterOptions) {
    this.clock = options.clock;
    this.random = seededRandom(options.seed);
    this.uid = this.random.uuid();
    this.store = new Store(options.clock, this.random);
    this.backend = new Backend(options.clock);
    this.#base = options.settings ?? {};
    this.#settings = { ...defaultSettings, clusterId: this.uid, ...this.#base };
    this.#recorder = new Recorder(this.store, this.clock);
  }

  /** The settings in force. */
  get settings(): ClusterSettings {
    return this.#settings;
  }

  /** Writes events as the controllers do. */
  get recorder(): Recorder {
    return this.#recorder;
  }

  /** Empties the cluster and the backend and restarts every controller, with a scenario's settings. */
  reset(settings: Partial<ClusterSettings> = {}): void {
    this.store.clear();
    this.backend.reset();
    this.#silent.clear();
    this.#stopped.clear();
    this.#settings = { ...defaultSettings, clusterId: this.uid, ...settings, ...this.#base };
    this.restartControllers();
  }

  /** Makes every controller forget what it remembers, as a restart of the controller manager does. */
  restartControllers(): void {
    this.#recorder = new Recorder(this.store, this.clock);
    this.#controllers = freshControllers();
    this.#seen = -1;
  }

  /** Stops a node's kubelet: power cut or partition, which look the same from here. */
  silence(node: string): void {
    this.#silent.add(node);
  }

  /** Lets a node's kubelet run again. */
  revive(node: string): void {
    this.#silent.delete(node);
    this.#seen = -1;
  }

  /** Stops a part of the control plane. */
  stop(component: Component): void {
    this.#stopped.add(component);
  }

  /** Starts it again. */
  start(component: Component): void {
    this.#stopped.delete(component);
    this.#seen = -1;
  }

  /** One pass of all controllers, if there is anything to do. Returns whether something changed. */
  pass(): boolean {
    const before = this.store.revision;
    if (before === this.#seen && this.clock.now() < this.#wake) return false;
    let wake = Number.POSITIVE_INFINITY;
    const now = this.clock.now();
    const context: Context = {
      store: this.store,
      backend: this.backend,
      clock: this.clock,
      random: this.random,
      recorder: this.#recorder,
      settings: this.#settings,
      silent: this.#silent,
      running: (component) => !this.#stopped.has(component),
      wakeAt: (ms) => {
        if (ms > now) wake = Math.min(wake, ms);
      },
    };
    for (const controller of this.#controllers) {
      if (controller.component !== undefined && this.#stopped.has(controller.component)) continue;
      try {
        controller.reconcile(context);
      } catch (error) {
        // Another writer was faster, as happens to real controllers: the next pass reads again.
        if (!isApiError(error)) throw error;
      }
    }
    this.#wake = wake;
    this.#seen = before;
    const changed = this.store.revision !== before;
    if (changed) this.#seen = -1;
    return changed;
  }

  /** Passes until the cluster is at rest at the present time; throws when it never comes to rest. */
  settle(): void {
    for (let i = 0; i < MOST_PASSES; i += 1) if (!this.pass()) return;
    throw new Error('the simulated cluster does not come to rest: a controller writes in every pass');
  }
}
