import { absurd } from './errors.ts';
import type { DataLoss, Proof, Risk } from './remediation.ts';
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

export interface Step {
  readonly no: number;
  readonly write: PlannedWrite;
  readonly state: StepState;
  /** Epoch under which it was last attempted. */
  readonly epoch: number;
  readonly attempt: number;
  /** RFC 3339, when the state was last set. */
  readonly at: string | null;
  readonly result: string | null;
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
export interface Plan {
  readonly id: string;
  readonly incident: string;
  readonly finding: string;
  readonly fault: string;
  readonly cluster: string;
  readonly clusterUid: string;
  readonly remediation: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly title: string;
  readonly writes: readonly PlannedWrite[];
  readonly digest: string;
  readonly risk: Risk;
  readonly dataLoss: DataLoss;
  readonly requires: readonly Proof[];
  readonly undo: string;
  /** Slack user id; null for a plan that nobody asked for. */
  readonly requester: string | null;
  readonly state: PlanState;
  /** One sentence for people about the last change of state: why it was refused, halted, expired … */
  readonly stateReason: string | null;
  readonly createdAt: string;
  readonly approveBy: string;
  readonly executeBy: string | null;
  readonly epoch: number;
  readonly votes: readonly Vote[];
  readonly steps: readonly Step[];
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
export function approvalFormOf(plan: Pick<Plan, 'risk' | 'requires' | 'writes' | 'params'>): ApprovalForm {
  const namesData = plan.requires.includes('data-disposable') || plan.requires.includes('old-data-wanted');
  const isHigh = plan.risk === 'high' || plan.risk === 'critical';
  return {
    proofs: plan.requires,
    reason: isHigh,
    typedName: namesData || plan.risk === 'critical' ? typedNameOf(plan) : null,
  };
}

/** The claim's or volume's name when a parameter says which data is meant, else the name of the first target. */
function typedNameOf(plan: Pick<Plan, 'writes' | 'params'>): string {
  const named = plan.params['dataName'];
  return typeof named === 'string' ? named : (plan.writes[0]?.name ?? '');
}

export function needsModal(form: ApprovalForm): boolean {
  return form.proofs.length > 0 || form.reason || form.typedName !== null;
}

/** What a modal's input lacks, by input block; empty when it is right. */
export function checkForm(
  form: ApprovalForm,
  input: { readonly proofs: Readonly<Record<string, string>>; readonly reason: string; readonly typedName: string },
): Readonly<Record<string, string>> {
  const errors: Record<string, string> = {};
  for (const proof of form.proofs) {
    if ((input.proofs[proof] ?? '').trim().length < 10)
      errors[`proof/${proof}`] = 'Say in a sentence how you know, 10 characters at least.';
  }
  if (form.reason && input.reason.trim().length < 10) errors['reason'] = 'Say why, 10 characters at least.';
  if (form.typedName !== null && input.typedName.trim() !== form.typedName)
    errors['typed-name'] = `Type ${form.typedName} letter for letter.`;
  return errors;
}

/** The line that people read for a state. */
export function describeState(state: PlanState): string {
  switch (state) {
    case 'DRAFT':
      return 'being prepared';
    case 'AWAITING_APPROVAL':
      return 'waits for approval';
    case 'APPROVED':
      return 'approved, about to start';
    case 'EXECUTING':
      return 'being carried out';
    case 'VERIFYING':
      return 'carried out, being verified';
    case 'HALTED':
      return 'halted between two steps';
    case 'NEEDS_ATTENTION':
      return 'needs a person: its outcome is not certain';
    case 'SUCCEEDED':
      return 'done and verified';
    case 'FAILED':
      return 'failed';
    case 'REJECTED':
      return 'rejected';
    case 'EXPIRED':
      return 'expired';
    case 'CANCELLED':
      return 'cancelled';
    case 'SUPERSEDED':
      return 'superseded by a newer plan';
    case 'DENIED':
      return 'not allowed by the policy';
    default:
      return absurd(state);
  }
}
