import { quorumOf } from '../../domain/approval.ts';
import type { SpokenFinding, SpokenIncident, SpokenOffer, SpokenPlan } from '../../domain/spoken.ts';
import { clean } from '../../domain/visible.ts';
import type { Locale } from '../../locales/en.ts';
import type { MessageMetadata } from '../../ports.ts';
import type { Mrkdwn } from './blocks.ts';
import { date, esc, person } from './text.ts';

/** `Critical: what is wrong :red_circle:`. Words first, one emoji last: screen readers read it, and colour alone says nothing. */
export function findingLine(finding: SpokenFinding, most: number, t: Locale): Mrkdwn {
  const summary = esc(finding.summary, most);
  if (finding.verdict === 'progress') return `${t.inProgress(summary)} :hourglass_flowing_sand:`;
  const emoji = { critical: ' :red_circle:', warning: ' :large_yellow_circle:', info: '' }[finding.severity];
  return `${t.ofSeverity(finding.severity, summary)}${emoji}`;
}

/** `1 of 2 approvals: @ada`. */
export function voteWords(plan: SpokenPlan, t: Locale): Mrkdwn {
  const quorum = quorumOf(plan, plan.votes);
  const valid = plan.votes.filter((vote) => vote.digest === plan.digest);
  const names = (decision: 'approve' | 'reject') => [
    ...new Set(valid.filter((vote) => vote.decision === decision).map((vote) => person(vote.user))),
  ];
  const approvers = t.list(names('approve').slice(0, 10));
  const rejecters = t.list(names('reject').slice(0, 10));
  return t.votes(quorum.approvals, quorum.needed, approvers, rejecters);
}

/** What it does, in words, for an offer of which no plan was made. */
export function offerName(offer: SpokenOffer, t: Locale): string {
  const first = offer.plan[0];
  const target = first ? `${first.namespace === null ? '' : `${first.namespace}/`}${first.name}` : '';
  return t.finding.offerName(offer.remediation, target);
}

/** Cluster, scope, id, and who asked, in one small line. */
export function whereabouts(incident: SpokenIncident, t: Locale): Mrkdwn {
  return [
    t.cluster(esc(incident.cluster, 200)),
    esc(t.scope(incident.scope), 600),
    esc(incident.id, 80),
    ...(incident.report === null ? [] : [t.seen(date(incident.report.now))]),
    ...(incident.requester === null ? [] : [t.askedBy(person(incident.requester))]),
  ].join(' · ');
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
