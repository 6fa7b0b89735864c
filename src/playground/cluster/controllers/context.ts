import type { Backend } from '../backend.ts';
import type { Recorder } from '../recorder.ts';
import type { Store } from '../store.ts';
import type { SimClock, SimRandom } from '../time.ts';

/** Control plane parts and sidecars that can be switched off. */
export type Component = 'kube-controller-manager' | 'kube-scheduler' | 'external-attacher' | 'external-provisioner';

/** What a scenario may say about the cluster it plays in. Times in milliseconds. */
export interface ClusterSettings {
  /** Kubernetes version; texts follow it. */
  readonly version: string;
  /** Name of the CSI driver. */
  readonly driver: string;
  /** Id with which the backend tags this cluster's volumes. */
  readonly clusterId: string;
  /** `--disable-force-detach-on-timeout` of the controller manager. */
  readonly disableForceDetach: boolean;
  /** Force detach after a volume is not wanted any more on an unhealthy node. */
  readonly forceDetachMs: number;
  /** Node silence before it counts as not Ready. */
  readonly nodeGraceMs: number;
  /** Period of the pod garbage collector, and its quarantine of pods on missing nodes. */
  readonly podGcPeriodMs: number;
  readonly podGcQuarantineMs: number;
  /** How long one attach or detach may take before it counts as failed. */
  readonly attachWaitMs: number;
  /** Image tag of the csi-provisioner sidecar. */
  readonly provisionerVersion: string;
  /** HonorPVReclaimPolicy of the sidecar: off by default before v5.0.0. */
  readonly honorReclaimPolicy: boolean;
}

/** What a reconciler works with. */
export interface Context {
  readonly store: Store;
  readonly backend: Backend;
  readonly clock: SimClock;
  readonly random: SimRandom;
  readonly recorder: Recorder;
  readonly settings: ClusterSettings;
  /** Nodes whose kubelet does not run. */
  readonly silent: ReadonlySet<string>;
  /** Whether a part of the control plane runs. */
  running(component: Component): boolean;
  /** Asks for a pass at this time (ms since the epoch) even if nothing changes until then. */
  wakeAt(ms: number): void;
}

/**
 * One controller: looks at the state and moves it one step. It must write nothing when there is nothing to do, so that
 * the cluster comes to rest. What it remembers between passes is lost when a scenario is loaded, as in a restart.
 */
export interface Controller {
  readonly name: string;
  readonly component: Component | undefined;
  reconcile(context: Context): void;
}
