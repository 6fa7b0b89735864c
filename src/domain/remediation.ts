import type { z } from 'zod';
import type { Cluster } from './cluster.ts';
import { absurd } from './errors.ts';
import type { ResourceName } from './resources.ts';
import type { ScopeRef } from './scope.ts';
import type { Text } from './text.ts';
import type { Write } from './write.ts';

export const risks = ['low', 'medium', 'high', 'critical'] as const;
export type Risk = (typeof risks)[number];

export type DataLoss = 'none' | 'possible' | 'certain';

/** Proofs from outside the cluster that each approver must give in words. */
export const proofs = {
  'node-off-proof': {
    en: 'How do you know that the machine is off or fenced? (cloud console, BMC, storage fence)',
    zh: '你如何得知这台机器已关机或已被隔离？（云控制台、BMC、存储隔离）',
  },
  'node-clean-proof': {
    en: 'How do you know that the machine was power-cycled and holds no left-over mounts?',
    zh: '你如何得知这台机器已断电重启，并且没有残留的挂载？',
  },
  'backend-detached-proof': {
    en: 'How do you know that the backend shows the volume attached to nobody, or not to that node?',
    zh: '你如何得知在存储后端中该卷没有挂接到任何节点，或没有挂接到那个节点？',
  },
  'backend-deleted-proof': {
    en: 'How do you know that the backend does not know the handle any more?',
    zh: '你如何得知存储后端中已不存在这个卷句柄？',
  },
  'backend-volume-proof': {
    en: 'How do you know that this backend volume holds the data meant here and that nothing else uses it?',
    zh: '你如何得知这个后端卷中保存的正是这里所指的数据，并且没有其他使用者？',
  },
  'finalizer-owner-gone': {
    en: 'How do you know that the owner of this finalizer will not come back?',
    zh: '你如何得知这个 Finalizer 的所有者不会再回来？',
  },
  'data-disposable': {
    en: 'Who owns the data, and how did they agree that it is destroyed?',
    zh: '数据归谁所有？对方以何种方式同意销毁这些数据？',
  },
  'old-data-wanted': {
    en: "Who owns the data, and how did they confirm that they want this volume's old data?",
    zh: '数据归谁所有？对方以何种方式确认需要这个卷中的旧数据？',
  },
  'downtime-accepted': {
    en: 'Who owns the workload, and how did they accept the interruption?',
    zh: '工作负载归谁所有？对方以何种方式接受这次中断？',
  },
} as const satisfies Readonly<Record<string, Text>>;
export type Proof = keyof typeof proofs;

/** An offer as a detector makes it: which remediation, on what. Its plan, digest and proofs are worked out by the machine. */
export interface OfferDraft {
  readonly remediation: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** What a remediation needs and risks in the state at hand; never less than its row of the catalogue. */
export interface Assessment {
  readonly requires: readonly Proof[];
  readonly dataLoss: DataLoss;
}

/** One access that a remediation makes, for RBAC. `subresource` as in `deployments/scale`. */
export interface Touch {
  readonly verb: 'create' | 'delete' | 'patch';
  readonly resource: ResourceName;
  readonly subresource?: 'scale';
}

export interface RemediationDoc {
  /** What it does, in one sentence for the offer. */
  readonly does: Text;
  readonly undo: Text;
  /** What its approvers should know before they say yes. Markdown. */
  readonly caution: Text;
}

export interface RemediationSpec<Id extends string, Params extends Readonly<Record<string, unknown>>> {
  readonly id: Id;
  readonly risk: Risk;
  /** Proofs that are always needed. */
  readonly requires: readonly Proof[];
  readonly params: z.ZodType<Params>;
  readonly touches: readonly Touch[];
  /** What preflight and verify read, besides what is touched. */
  readonly needs: readonly ResourceName[];
  /** Those of `needs` that nothing in the state asks for: read all the same before it is carried out. None when left out. */
  readonly always?: readonly ResourceName[];
  readonly doc: RemediationDoc;
  /** Button text and heading with the target in it: `Set db-0's volume to Retain`. 60 characters at most, longer is cut. */
  title(params: Params): Text;
  /** Where the machine must look: preflight and verify get a snapshot of this scope. */
  scope(params: Params): ScopeRef;
  /** Adds what this state demands beyond `requires`; data loss is `none` when left out. */
  assess?(params: Params, cluster: Cluster): Assessment;
  /** Every write, in order. Throws `Refused` when the target is gone or another object. */
  plan(params: Params, cluster: Cluster): readonly Write[];
  /** Why it must not be done now; empty when nothing speaks against it. */
  preflight(params: Params, cluster: Cluster): readonly Text[];
  /** Whether the wait after write `no` is over, for plans of several writes. Absent: go on at once. */
  settled?(no: number, params: Params, cluster: Cluster): boolean;
  /** How long that wait, and the verification, may take before a person must look, in seconds. */
  readonly withinSeconds: number;
  /** Whether the goal of the whole plan is reached. */
  verify(params: Params, cluster: Cluster): 'done' | 'pending';
}

/** A remediation as the machines see it: parameters are checked at the door of every function. */
export interface Remediation {
  readonly id: string;
  readonly risk: Risk;
  readonly requires: readonly Proof[];
  readonly touches: readonly Touch[];
  readonly needs: readonly ResourceName[];
  readonly always: readonly ResourceName[];
  readonly doc: RemediationDoc;
  readonly withinSeconds: number;
  title(params: unknown): Text;
  scope(params: unknown): ScopeRef;
  assess(params: unknown, cluster: Cluster): Assessment & { readonly risk: Risk };
  plan(params: unknown, cluster: Cluster): readonly Write[];
  preflight(params: unknown, cluster: Cluster): readonly Text[];
  settled(no: number, params: unknown, cluster: Cluster): boolean;
  verify(params: unknown, cluster: Cluster): 'done' | 'pending';
}

/** Defines one remediation of the catalogue. File name = id; the export is its camelCase. */
export function defineRemediation<const Id extends string, Params extends Readonly<Record<string, unknown>>>(
  spec: RemediationSpec<Id, Params>,
): Remediation & { readonly id: Id; offer(params: Params): OfferDraft } {
  const parse = (params: unknown) => spec.params.parse(params);
  return {
    id: spec.id,
    risk: spec.risk,
    requires: spec.requires,
    touches: spec.touches,
    needs: spec.needs,
    always: spec.always ?? [],
    doc: spec.doc,
    withinSeconds: spec.withinSeconds,
    offer: (params) => ({ remediation: spec.id, params }),
    title: (params) => spec.title(parse(params)),
    scope: (params) => spec.scope(parse(params)),
    assess(params, cluster) {
      const more = spec.assess?.(parse(params), cluster) ?? { requires: [], dataLoss: 'none' as const };
      return {
        requires: [...new Set([...spec.requires, ...more.requires])],
        dataLoss: more.dataLoss,
        risk: more.dataLoss === 'none' ? spec.risk : atLeast(spec.risk, 'high'),
      };
    },
    plan: (params, cluster) => spec.plan(parse(params), cluster),
    preflight: (params, cluster) => spec.preflight(parse(params), cluster),
    settled: (no, params, cluster) => spec.settled?.(no, parse(params), cluster) ?? true,
    verify: (params, cluster) => spec.verify(parse(params), cluster),
  };
}

export function atLeast(risk: Risk, least: Risk): Risk {
  return risks.indexOf(risk) < risks.indexOf(least) ? least : risk;
}

/** Data that is kept comes first, then what can be taken back, then by risk (catalogue §4). */
export function safetyRank(offer: {
  readonly remediation: string;
  readonly risk: Risk;
  readonly requires: readonly Proof[];
  readonly dataLoss: DataLoss;
}): number {
  const keepsData = offer.remediation === 'set-reclaim-policy-retain' || offer.remediation === 'take-snapshot';
  return (
    (keepsData ? 0 : 1000) + lossRank(offer.dataLoss) * 100 + risks.indexOf(offer.risk) * 10 + offer.requires.length
  );
}

function lossRank(loss: DataLoss): number {
  switch (loss) {
    case 'none':
      return 0;
    case 'possible':
      return 1;
    case 'certain':
      return 2;
    default:
      return absurd(loss);
  }
}
