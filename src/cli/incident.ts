import type { Command } from 'commander';
import { describeRef } from '../domain/ref.ts';
import { incidentIn, planIn, type SpokenIncident, type SpokenPlan } from '../domain/spoken.ts';
import type { Language } from '../domain/text.ts';
import type { Locale } from '../locales/en.ts';
import { locales } from '../locales/index.ts';
import { row } from './columns.ts';
import { getIncident } from './incidents.ts';
import { languageOption } from './language.ts';
import { incidentJson, output, planLine, printJson, type StoredDeps, withStore } from './stored.ts';

/** `k8s-storage incident ID`. */
export function addIncidentWord(program: Command, deps: StoredDeps): void {
  program
    .command('incident <id>')
    .description('show one incident with its findings and plans')
    .option('--output <format>', 'text or json', 'text')
    .addOption(languageOption())
    .action(async (id: string, options: { readonly output: string; readonly language: Language }) => {
      const format = output(options.output);
      const { language } = options;
      await withStore(deps, async (store) => {
        const incident = incidentIn(await getIncident(store, id), language);
        const plans = (await store.plansOfIncident(id)).map((plan) => planIn(plan, language));
        if (format === 'json') printJson(deps, incidentJson(incident, plans));
        else deps.out(`${textOf(incident, plans, locales[language]).join('\n')}\n`);
      });
    });
}

function textOf(incident: SpokenIncident, plans: readonly SpokenPlan[], t: Locale): readonly string[] {
  const { labels } = t.stored;
  const { requester, openedAt } = incident;
  const place = incident.thread === null ? incident.channel : `${incident.channel} ${incident.thread}`;
  return [
    t.stored.about(incident.id, t.scope(incident.scope), incident.cluster),
    row(labels.state, t.incidentState(incident.state)),
    row(labels.opened, requester === null ? openedAt : t.stored.openedBy(openedAt, requester)),
    ...(incident.resolvedAt === null ? [] : [row(labels.resolved, incident.resolvedAt)]),
    row(labels.thread, place),
    ...(incident.problem === null ? [] : [row(labels.problem, incident.problem)]),
    ...(incident.report?.findings ?? []).flatMap(({ id, fault, verdict, severity, subject, summary }) => [
      row(labels.finding, `${id} ${fault} (${verdict}, ${severity}): ${describeRef(subject)}`),
      row('', summary),
    ]),
    ...plans.map((plan) => row(labels.plan, planLine(plan))),
  ];
}
