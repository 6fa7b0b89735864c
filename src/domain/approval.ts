import type { Plan, Vote } from './plan.ts';
import type { Risk } from './remediation.ts';

/** What Slack says about a user, as far as the right to decide depends on it. */
export interface Person {
  readonly id: string;
  readonly teamId: string;
  readonly name: string;
  readonly isDeleted: boolean;
  readonly isBot: boolean;
  readonly isRestricted: boolean;
  readonly isUltraRestricted: boolean;
  readonly isStranger: boolean;
  /** Slack locale such as `en-US`. */
  readonly locale: string | undefined;
}

/** A user who could not be read is nobody: not eligible. */
export type KnownPerson = Person | { readonly id: string; readonly unreadable: string };

/** Why a person may not decide anything in this workspace; undefined when they may. */
export function whyNotEligible(person: KnownPerson, teamId: string): string | undefined {
  if ('unreadable' in person) return `Slack could not tell who you are (${person.unreadable}); try again.`;
  if (person.teamId !== teamId) return 'People of another workspace may not decide here.';
  if (person.isDeleted) return 'This account is deactivated.';
  if (person.isBot) return 'Bots may not decide.';
  if (person.isRestricted || person.isUltraRestricted) return 'Guests may not decide.';
  if (person.isStranger) return 'External people may not decide here.';
  return undefined;
}

/** The built-in policy for a risk: how many different people, and whether the requester may be one of them. */
export function requirementOf(risk: Risk): { readonly people: number; readonly requesterMay: boolean } {
  switch (risk) {
    case 'low':
      return { people: 1, requesterMay: true };
    case 'medium':
      return { people: 1, requesterMay: false };
    case 'high':
    case 'critical':
      return { people: 2, requesterMay: false };
  }
}

/** Why this eligible person may not approve this plan; undefined when they may. A reject is open to every eligible person. */
export function whyMayNotApprove(
  plan: Pick<Plan, 'risk' | 'requester' | 'votes' | 'digest'>,
  user: string,
): string | undefined {
  const { requesterMay, people } = requirementOf(plan.risk);
  if (!requesterMay && plan.requester === user) {
    return people === 1
      ? 'You asked for this diagnosis, so somebody else must approve.'
      : 'You asked for this diagnosis, so two other people must approve.';
  }
  if (plan.votes.some((vote) => vote.user === user && vote.decision === 'approve'))
    return 'You have approved this plan already.';
  return undefined;
}

export interface Quorum {
  readonly isMet: boolean;
  readonly isRejected: boolean;
  readonly approvals: number;
  readonly needed: number;
}

/**
 * Counts the votes of a plan: only those for its present digest, one per person, the requester's only where the policy
 * lets the requester vote. One reject ends it. Who is eligible was checked before and is checked again at each vote.
 */
export function quorumOf(plan: Pick<Plan, 'risk' | 'requester' | 'digest'>, votes: readonly Vote[]): Quorum {
  const { people, requesterMay } = requirementOf(plan.risk);
  const valid = votes.filter((vote) => vote.digest === plan.digest);
  const approvers = new Set(
    valid
      .filter((vote) => vote.decision === 'approve' && (requesterMay || vote.user !== plan.requester))
      .map((vote) => vote.user),
  );
  return {
    isMet: approvers.size >= people && !valid.some((vote) => vote.decision === 'reject'),
    isRejected: valid.some((vote) => vote.decision === 'reject'),
    approvals: approvers.size,
    needed: people,
  };
}
