import { quorumOf, requirementOf } from '../../domain/approval.ts';
import { absurd } from '../../domain/errors.ts';
import type { Severity } from '../../domain/fault.ts';
import type { DataLoss, Risk } from '../../domain/remediation.ts';
import { describeScope } from '../../domain/scope.ts';
import type { SpokenFinding, SpokenIncident, SpokenOffer, SpokenPlan } from '../../domain/spoken.ts';
import type { MessageMetadata } from '../../ports.ts';
import type { Mrkdwn } from './blocks.ts';
import { clean, date, esc, person } from './text.ts';

export function severityWord(severity: Severity): string {
  switch (severity) {
    case 'critical':
      return 'Critical';
    case 'warning':
      return 'Warning';
    case 'info':
      return 'For your information';
    default:
      return absurd(severity);
  }
}

/** `Critical: what is wrong :red_circle:`. Words first, one emoji last: screen readers read it, and colour alone says nothing. */
export function findingLine(finding: SpokenFinding, most: number): Mrkdwn {
  const summary = esc(finding.summary, most);
  if (finding.verdict === 'progress') return `In progress: ${summary} :hourglass_flowing_sand:`;
  const emoji = { critical: ' :red_circle:', warning: ' :large_yellow_circle:', info: '' }[finding.severity];
  return `${severityWord(finding.severity)}: ${summary}${emoji}`;
}

export function lossWords(loss: DataLoss): string {
  switch (loss) {
    case 'none':
      return 'no data is lost';
    case 'possible':
      return '*data may be lost*';
    case 'certain':
      return '*data is destroyed*';
    default:
      return absurd(loss);
  }
}

export function needWords(risk: Risk): string {
  const { people, requesterMay } = requirementOf(risk);
  if (people > 1) return `needs ${people} people, none of them the one who asked`;
  return requesterMay ? 'needs one person' : 'needs one person other than the one who asked';
}

/** `1 of 2 approvals: @ada`. */
export function voteWords(plan: SpokenPlan): Mrkdwn {
  const quorum = quorumOf(plan, plan.votes);
  const valid = plan.votes.filter((vote) => vote.digest === plan.digest);
  const names = (decision: 'approve' | 'reject') => [
    ...new Set(valid.filter((vote) => vote.decision === decision).map((vote) => person(vote.user))),
  ];
  const approvers = names('approve').slice(0, 10).join(', ');
  const rejecters = names('reject').slice(0, 10).join(', ');
  const counted = `${quorum.approvals} of ${quorum.needed} ${quorum.needed === 1 ? 'approval' : 'approvals'}`;
  return `${counted}${approvers === '' ? '' : `: ${approvers}`}${rejecters === '' ? '' : `; rejected by ${rejecters}`}`;
}

/** What it does, in words, for an offer of which no plan was made. */
export function offerName(offer: SpokenOffer): string {
  const first = offer.plan[0];
  const target = first ? ` ${first.namespace === null ? '' : `${first.namespace}/`}${first.name}` : '';
  return `${offer.remediation.replaceAll('-', ' ')}${target}`;
}

/** Cluster, scope, id, and who asked, in one small line. */
export function whereabouts(incident: SpokenIncident): Mrkdwn {
  const asked = incident.requester === null ? '' : ` · asked by ${person(incident.requester)}`;
  const seen = incident.report === null ? '' : ` · seen ${date(incident.report.now)}`;
  return `cluster ${esc(incident.cluster, 200)} · ${esc(describeScope(incident.scope), 600)} · ${esc(incident.id, 80)}${seen}${asked}`;
}

/** Ids for other programs, short enough for Slack's metadata; keys without a value are absent. */
export function metadataOf(
  kind: 'incident' | 'finding' | 'plan' | 'progress' | 'result',
  ids: {
    readonly [key in 'incident' | 'finding' | 'fault' | 'plan' | 'remediation' | 'digest' | 'state']?:
      | string
      | undefined;
  },
): MessageMetadata {
  const payload: Record<string, string> = { kind };
  for (const [key, value] of Object.entries(ids))
    if (value !== undefined && value !== '') payload[key] = clean(value).slice(0, 200);
  return { event_type: 'k8s_storage', event_payload: payload };
}

/** The plan that an offer is now: the one of its digest that still lives, else the last one. */
export function planOf(offer: SpokenOffer, plans: readonly SpokenPlan[]): SpokenPlan | undefined {
  const same = plans.filter((plan) => plan.digest === offer.digest && plan.remediation === offer.remediation);
  return same.find((plan) => plan.state === 'AWAITING_APPROVAL') ?? same.at(-1);
}
