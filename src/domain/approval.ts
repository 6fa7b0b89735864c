import type { Plan, Vote } from './plan.ts';
import type { Risk } from './remediation.ts';
import { en, type Language, type Text, zh } from './text.ts';

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
  /** IANA name of the time zone that they have in Slack. */
  readonly timeZone?: string | undefined;
}

/** A user who could not be read is nobody: not eligible. */
export type KnownPerson = Person | { readonly id: string; readonly unreadable: Text };

/** The language of somebody's Slack: Chinese of any kind, else English; undefined when Slack does not tell. */
export function languageOf(person: KnownPerson): Language | undefined {
  if ('unreadable' in person || person.locale === undefined) return undefined;
  return /^zh\b/i.test(person.locale) ? 'zh' : 'en';
}

/** Why a person may not decide anything in this workspace; undefined when they may. */
export function whyNotEligible(person: KnownPerson, teamId: string): Text | undefined {
  if ('unreadable' in person)
    return {
      en: en`Slack could not tell who you are (${person.unreadable}); try again.`,
      zh: zh`Slack 无法确认你的身份（${person.unreadable}），请重试。`,
    };
  if (person.teamId !== teamId)
    return { en: 'People of another workspace may not decide here.', zh: '其他工作区的成员不能在此做决定。' };
  if (person.isDeleted) return { en: 'This account is deactivated.', zh: '该账号已停用。' };
  if (person.isBot) return { en: 'Bots may not decide.', zh: '机器人不能做决定。' };
  if (person.isRestricted || person.isUltraRestricted) return { en: 'Guests may not decide.', zh: '访客不能做决定。' };
  if (person.isStranger) return { en: 'External people may not decide here.', zh: '外部人员不能在此做决定。' };
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
  plan: Pick<Plan<unknown>, 'risk' | 'requester' | 'votes' | 'digest'>,
  user: string,
): Text | undefined {
  const { requesterMay, people } = requirementOf(plan.risk);
  if (!requesterMay && plan.requester === user) {
    return people === 1
      ? {
          en: 'You asked for this diagnosis, so somebody else must approve.',
          zh: '这次诊断由你发起，因此必须由其他人批准。',
        }
      : {
          en: 'You asked for this diagnosis, so two other people must approve.',
          zh: '这次诊断由你发起，因此必须由另外两个人批准。',
        };
  }
  if (plan.votes.some((vote) => vote.user === user && vote.decision === 'approve'))
    return { en: 'You have approved this plan already.', zh: '你已经批准过这个计划。' };
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
export function quorumOf(plan: Pick<Plan<unknown>, 'risk' | 'requester' | 'digest'>, votes: readonly Vote[]): Quorum {
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
