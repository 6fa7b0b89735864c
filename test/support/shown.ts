/** Everything that people can be shown of one report, wherever they read it. */
import { renderMarkdown, renderText } from '../../src/cli/render.ts';
import type { Catalogue } from '../../src/diagnose.ts';
import { chainOf } from '../../src/domain/chain.ts';
import { describeChain } from '../../src/domain/chain-text.ts';
import type { Cluster } from '../../src/domain/cluster.ts';
import { approvalFormOf, type PlanState } from '../../src/domain/plan.ts';
import type { Report } from '../../src/domain/report.ts';
import {
  reportIn,
  type SpokenFinding,
  type SpokenOffer,
  type SpokenPlan,
  type SpokenReport,
} from '../../src/domain/spoken.ts';
import { type Language, textIn, verbatim } from '../../src/domain/text.ts';
import { locales } from '../../src/locales/index.ts';
import { checkMessage, checkView } from '../../src/slack/limits.ts';
import { commandsAnswer, evidenceAnswer, incidentAnswer } from '../../src/slack/views/answers.ts';
import { findingMessages, type Picture } from '../../src/slack/views/findings.ts';
import { incidentMessage } from '../../src/slack/views/incident.ts';
import { decisionModal } from '../../src/slack/views/modal.ts';
import { planMessage } from '../../src/slack/views/plan.ts';
import { look } from '../slack/support/parse.ts';
import { incidentOf, planOf } from '../slack/support/samples.ts';

/** What is shown at one place: its texts as Slack or a terminal gets them, and what Slack would refuse. */
export interface Shown {
  readonly where: string;
  readonly texts: readonly string[];
  readonly refused: readonly string[];
}

/** Every message, form and print of a report in one language; the pictures' words are those of its cluster. */
export function shownOf(report: Report, cluster: Cluster, catalogue: Catalogue, language: Language): readonly Shown[] {
  const t = locales[language];
  const spoken = reportIn(report, language);
  const incident = incidentOf({ report: spoken, cluster: spoken.cluster.name ?? 'prod-eu', scope: scopeOf(spoken) });
  const plans = plansOf(spoken, catalogue, language);
  const pictures = new Map<string, Picture>();
  for (const finding of report.findings) {
    const chain = chainOf(finding, cluster);
    if (chain) pictures.set(finding.id, { file: `F${finding.id}`, words: describeChain(chain, language) });
  }
  const messages = [
    ['first message', incidentMessage(incident, plans, t)],
    ...findingMessages(incident, plans, t, pictures).map(({ message }) => ['finding', message] as const),
    ...plans.flatMap((plan) =>
      planStates.map((state) => [`plan ${state}`, planMessage({ ...plan, state }, t)] as const),
    ),
    ['incident answer', incidentAnswer(incident, plans, t)],
    ['evidence answer', evidenceAnswer(incident, t)],
    ['commands answer', commandsAnswer(incident, t)],
  ] as const;
  const views = plans.flatMap((plan) =>
    (['approve', 'reject'] as const).map((decision) => decisionModal(decision, plan, approvalFormOf(plan), t)),
  );
  return [
    ...messages.map(([where, message]) => ({ where, texts: textsOf(message), refused: checkMessage(message) })),
    ...views.map((view) => ({ where: 'form', texts: textsOf(view), refused: checkView(view) })),
    { where: 'terminal', texts: [renderText(spoken, catalogue, t)], refused: [] },
    { where: 'Markdown', texts: [renderMarkdown(spoken, catalogue, t)], refused: [] },
  ];
}

const planStates: readonly PlanState[] = ['AWAITING_APPROVAL', 'EXECUTING', 'NEEDS_ATTENTION'];

/** Ids and types are for programs. */
function textsOf(shown: unknown): readonly string[] {
  const { strings } = look(shown);
  return strings.filter((text) => /\s|\p{Script=Han}/u.test(text));
}

function scopeOf({ scope: { kind, namespace, name } }: SpokenReport) {
  return name === null || kind === 'Cluster'
    ? ({ kind: 'Cluster' } as const)
    : { kind: kind as 'Pod', namespace, name };
}

/** The plans that an incident with these findings would have. */
function plansOf(report: SpokenReport, catalogue: Catalogue, language: Language): readonly SpokenPlan[] {
  return report.findings.flatMap((finding) =>
    finding.offers
      .filter(({ blocked, digest }) => blocked === null && digest !== null)
      .map((offer, no) => planFor(finding, offer, `pln-${finding.id}-${no}`, catalogue, language)),
  );
}

function planFor(
  finding: SpokenFinding,
  { remediation, params, plan, digest, risk, dataLoss, requires, undo }: SpokenOffer,
  id: string,
  { remediations }: Catalogue,
  language: Language,
): SpokenPlan {
  const title = remediations.find((one) => one.id === remediation)?.title(params) ?? verbatim(remediation);
  return planOf({
    id,
    finding: finding.id,
    fault: finding.fault,
    remediation,
    params,
    title: textIn(title, language),
    writes: plan,
    digest: digest ?? '',
    risk,
    dataLoss,
    requires,
    undo,
    steps: plan.map((write, no) => ({
      no: no + 1,
      write,
      state: 'PENDING',
      epoch: 0,
      attempt: 0,
      at: null,
      result: null,
    })),
  });
}
