import { absurd } from './errors.ts';
import type { DataLoss, Proof, Risk } from './remediation.ts';
import { en, type Text, zh } from './text.ts';
import type { PlannedWrite } from './write.ts';

/** States of a plan, letter for letter as the command line and the audit trail show them. */
export const planStates = [
  'DRAFT',
  'AWAITING_APPROVAL',
  'APPROVED',
  'EXECUTING',
  'VERIFYING',
  'HALTED',
  'NEEDS_ATTENTION',
  'SUCCEEDED',
  'FAILED',
  'REJECTED',
  'EXPIRED',
  'CANCELLED',
  'SUPERSEDED',
  'DENIED',
] as const;
export type PlanState = (typeof planStates)[number];

/** From each state, where a plan may go. Nothing leaves a terminal state. */
const transitions: Readonly<Record<PlanState, readonly PlanState[]>> = {
  DRAFT: ['AWAITING_APPROVAL', 'DENIED', 'CANCELLED', 'SUPERSEDED'],
  AWAITING_APPROVAL: ['APPROVED', 'REJECTED', 'EXPIRED', 'CANCELLED', 'SUPERSEDED'],
  APPROVED: ['EXECUTING', 'EXPIRED', 'CANCELLED', 'SUPERSEDED', 'REJECTED', 'HALTED'],
  EXECUTING: ['EXECUTING', 'VERIFYING', 'FAILED', 'NEEDS_ATTENTION', 'HALTED', 'SUPERSEDED'],
  VERIFYING: ['SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION'],
  HALTED: ['SUPERSEDED', 'FAILED', 'SUCCEEDED', 'CANCELLED'],
  NEEDS_ATTENTION: ['FAILED', 'SUCCEEDED', 'CANCELLED'],
  SUCCEEDED: [],
  FAILED: [],
  REJECTED: [],
  EXPIRED: [],
  CANCELLED: [],
  SUPERSEDED: [],
  DENIED: [],
};

export function isTerminal(state: PlanState): boolean {
  return transitions[state].length === 0;
}

export function mayBecome(from: PlanState, to: PlanState): boolean {
  return transitions[from].includes(to);
}

/** Whether the plan still holds its targets: from the quorum until it ends or a person has resolved it. */
export function holdsTargets(state: PlanState): boolean {
  return (
    state === 'APPROVED' ||
    state === 'EXECUTING' ||
    state === 'VERIFYING' ||
    state === 'HALTED' ||
    state === 'NEEDS_ATTENTION'
  );
}

export const stepStates = ['PENDING', 'INTENT', 'DONE', 'NOOP', 'REFUSED', 'UNKNOWN', 'SKIPPED'] as const;
export type StepState = (typeof stepStates)[number];

export interface Step<S = Text> {
  readonly no: number;
  readonly write: PlannedWrite;
  readonly state: StepState;
  /** Epoch under which it was last attempted. */
  readonly epoch: number;
  readonly attempt: number;
  /** RFC 3339, when the state was last set. */
  readonly at: string | null;
  readonly result: S | null;
}

export interface Vote {
  /** Slack user id. */
  readonly user: string;
  readonly decision: 'approve' | 'reject';
  readonly digest: string;
  readonly proofs: Readonly<Partial<Record<Proof, string>>>;
  readonly reason: string | null;
  readonly at: string;
}

/** A plan as stored. Everything up to `digest` is immutable. */
export interface Plan<S = Text> {
  readonly id: string;
  readonly incident: string;
  readonly finding: string;
  readonly fault: string;
  readonly cluster: string;
  readonly clusterUid: string;
  readonly remediation: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly title: S;
  readonly writes: readonly PlannedWrite[];
  readonly digest: string;
  readonly risk: Risk;
  readonly dataLoss: DataLoss;
  readonly requires: readonly Proof[];
  readonly undo: S;
  /** Slack user id; null for a plan that nobody asked for. */
  readonly requester: string | null;
  readonly state: PlanState;
  /** One sentence for people about the last change of state: why it was refused, halted, expired … */
  readonly stateReason: S | null;
  readonly createdAt: string;
  readonly approveBy: string;
  readonly executeBy: string | null;
  readonly epoch: number;
  readonly votes: readonly Vote[];
  readonly steps: readonly Step<S>[];
  /** The plan that took its place, once SUPERSEDED. */
  readonly successor: string | null;
  /** The halted plan whose remaining steps these are; its steps are not counted again. */
  readonly continues: string | null;
}

/** What a plan needs from those who approve it, as the modal asks it. */
export interface ApprovalForm {
  readonly proofs: readonly Proof[];
  readonly reason: boolean;
  /** The name that must be typed letter for letter; null when none is asked. */
  readonly typedName: string | null;
}

/** High and critical want a reason; destroying or choosing data, and critical, want the target's name typed. */
export function approvalFormOf(plan: Pick<Plan<unknown>, 'risk' | 'requires' | 'writes' | 'params'>): ApprovalForm {
  const namesData = plan.requires.includes('data-disposable') || plan.requires.includes('old-data-wanted');
  const isHigh = plan.risk === 'high' || plan.risk === 'critical';
  return {
    proofs: plan.requires,
    reason: isHigh,
    typedName: namesData || plan.risk === 'critical' ? typedNameOf(plan) : null,
  };
}

/** The claim's or volume's name when a parameter says which data is meant, else the name of the first target. */
function typedNameOf(plan: Pick<Plan<unknown>, 'writes' | 'params'>): string {
  const named = plan.params['dataName'];
  return typeof named === 'string' ? named : (plan.writes[0]?.name ?? '');
}

export function needsModal(form: ApprovalForm): boolean {
  return form.proofs.length > 0 || form.reason || form.typedName !== null;
}

/** Characters that a sentence of an approver has at least. A Chinese one counts for two: it says as much. */
const LEAST_WORDS = 10;

/** What a modal's input lacks, by input block; empty when it is right. */
export function checkForm(
  form: ApprovalForm,
  input: { readonly proofs: Readonly<Record<string, string>>; readonly reason: string; readonly typedName: string },
): Readonly<Record<string, Text>> {
  const errors: Record<string, Text> = {};
  for (const proof of form.proofs) {
    if (weightOf(input.proofs[proof] ?? '') < LEAST_WORDS)
      errors[`proof/${proof}`] = {
        en: en`Say in a sentence how you know, ${LEAST_WORDS} characters at least.`,
        zh: zh`请用一句话说明你是如何得知的，至少 ${LEAST_WORDS} 个字符（一个汉字按两个计算）。`,
      };
  }
  if (form.reason && weightOf(input.reason) < LEAST_WORDS)
    errors['reason'] = {
      en: en`Say why, ${LEAST_WORDS} characters at least.`,
      zh: zh`请说明原因，至少 ${LEAST_WORDS} 个字符（一个汉字按两个计算）。`,
    };
  if (form.typedName !== null && input.typedName.trim() !== form.typedName)
    errors['typed-name'] = {
      en: en`Type ${form.typedName} letter for letter.`,
      zh: zh`请逐字输入 ${form.typedName}。`,
    };
  return errors;
}

function weightOf(words: string): number {
  const tidy = words.trim();
  return tidy.length + (tidy.match(/\p{Script=Han}/gu)?.length ?? 0);
}

const stepWords: Readonly<Record<StepState, Text>> = {
  PENDING: { en: 'not begun', zh: '尚未开始' },
  INTENT: { en: 'being sent', zh: '正在发送' },
  DONE: { en: 'done', zh: '已完成' },
  NOOP: { en: 'was done already', zh: '此前已经完成' },
  REFUSED: { en: 'refused by the cluster', zh: '被集群拒绝' },
  UNKNOWN: { en: 'outcome not certain', zh: '结果不确定' },
  SKIPPED: { en: 'left out', zh: '已略过' },
};

/** What people read for the state of a step. */
export function describeStepState(state: StepState): Text {
  return stepWords[state];
}

/** The line that people read for a state. */
export function describeState(state: PlanState): Text {
  switch (state) {
    case 'DRAFT':
      return { en: 'being prepared', zh: '正在准备' };
    case 'AWAITING_APPROVAL':
      return { en: 'waits for approval', zh: '等待批准' };
    case 'APPROVED':
      return { en: 'approved, about to start', zh: '已批准，即将开始' };
    case 'EXECUTING':
      return { en: 'being carried out', zh: '正在执行' };
    case 'VERIFYING':
      return { en: 'carried out, being verified', zh: '已执行，正在验证' };
    case 'HALTED':
      return { en: 'halted between two steps', zh: '在两个步骤之间中止' };
    case 'NEEDS_ATTENTION':
      return { en: 'needs a person: its outcome is not certain', zh: '需要人工处理：结果不确定' };
    case 'SUCCEEDED':
      return { en: 'done and verified', zh: '已完成并通过验证' };
    case 'FAILED':
      return { en: 'failed', zh: '失败' };
    case 'REJECTED':
      return { en: 'rejected', zh: '已被拒绝' };
    case 'EXPIRED':
      return { en: 'expired', zh: '已过期' };
    case 'CANCELLED':
      return { en: 'cancelled', zh: '已取消' };
    case 'SUPERSEDED':
      return { en: 'superseded by a newer plan', zh: '已被更新的计划取代' };
    case 'DENIED':
      return { en: 'not allowed by the policy', zh: '策略不允许' };
    default:
      return absurd(state);
  }
}
