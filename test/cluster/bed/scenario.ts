import type { Proof } from '../../../src/domain/remediation.ts';
import type { faults } from '../../../src/faults/index.ts';
import type { remediations } from '../../../src/remediations/index.ts';
import type { Harm } from './backend.ts';
import type { Bed, BedOptions } from './bed.ts';

export type FaultId = (typeof faults)[number]['id'];
export type RemediationId = (typeof remediations)[number]['id'];

/** One finding as it must stand in the report, all of it: a finding with another reason, cause or offer is another one. */
export interface Expected {
  readonly fault: FaultId;
  /** `found` unless said. */
  readonly verdict?: 'found' | 'progress';
  /** `Kind [namespace/]name`. */
  readonly subject: string;
  readonly reason?: string;
  /** The fault of the finding that is its cause. */
  readonly causedBy?: FaultId;
  /** Remediations on offer, in the order in which they stand; none unless said. */
  readonly offers?: readonly RemediationId[];
  /** Each stands in the subject or in `involved`. */
  readonly involves?: readonly string[];
  readonly affects?: readonly string[];
}

/** What a scenario has made happen, and what must be said about it. Names that real controllers draw are known only now. */
export interface Provoked {
  /** As people name it after `/k8s-storage diagnose`: `deployment shop/web`, `node n1`, `cluster`. */
  readonly scope: string;
  /** How much later the product looks: past every grace time of the fault. 20 minutes unless said. */
  readonly laterMs?: number;
  /** The findings of that scope in their order, the first cause first. */
  readonly found: readonly Expected[];
  /** Those of the whole cluster: the bystanders that the scenario made stay silent. As `found` unless said. */
  readonly everywhere?: readonly Expected[];
}

/** One approved plan. */
export interface Repair {
  readonly remediation: RemediationId;
  /** Of several plans of that remediation, the one whose title fits. */
  readonly title?: RegExp;
  /** What the approvers say; sentences that fit anything otherwise. */
  readonly proofs?: Readonly<Partial<Record<Proof, string>>>;
  /** Between the approval before it and the diagnosis that offers it: what the world does in the meantime. */
  before?(bed: Bed): Promise<void>;
  /** In which state the plan ends; SUCCEEDED unless said. */
  readonly ends?: 'SUCCEEDED' | 'FAILED' | 'SUPERSEDED' | 'NEEDS_ATTENTION';
}

/**
 * A storage fault that real controllers make.
 * - `fault`: diagnosed, and repaired where the catalogue offers something;
 * - `look-alike`: nothing is wrong, or nothing may be offered, although it looks like one of `faults`;
 * - `harm`: a dangerous shortcut taken by hand, and the damage that the storage system has seen.
 */
export interface Scenario {
  readonly id: string;
  readonly kind: 'fault' | 'look-alike' | 'harm';
  /** What happens, in one sentence. */
  readonly title: string;
  readonly bed?: BedOptions;
  /** Played again by `npm run test:long`: with the default timers, and on an older Kubernetes. */
  readonly isCore?: boolean;
  /** The faults that it shows; of a look-alike those that it must not be taken for. */
  readonly faults: readonly FaultId[];
  /** The plans that people approve, in order. */
  readonly repairs?: readonly Repair[];
  /** Makes it happen and waits until it has, by watching the state. */
  provoke(bed: Bed): Promise<Provoked>;
  /** Waits until the real controllers have finished what the repairs began, and checks workload, claims and volumes. */
  recovered?(bed: Bed): Promise<void>;
  /** What is still found in the whole cluster at the end; nothing unless said. */
  left?(bed: Bed): Promise<readonly Expected[]> | readonly Expected[];
  /** What the storage system must have seen of each kind, at least once; no harm of any kind unless said. */
  readonly harm?: readonly Harm['kind'][];
  /** Volumes that the driver must have destroyed with all their data; not counted unless said. */
  readonly destroyed?: number;
  /** Volumes without a PV that may be left in the storage system; none unless said. */
  readonly leaks?: number;
  /** Seconds after which it has failed; 240 unless said. */
  readonly withinSeconds?: number;
}

/** Defines one scenario. File name = id; the export is its camelCase. */
export function defineScenario(scenario: Scenario): Scenario {
  return scenario;
}
