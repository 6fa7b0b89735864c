import type { Command } from 'commander';
import { describeIncidentState } from '../domain/incident.ts';
import { describeRef } from '../domain/ref.ts';
import { describeScope } from '../domain/scope.ts';
import { incidentIn, planIn } from '../domain/spoken.ts';
import { getIncident } from './incidents.ts';
import { incidentJson, output, planLine, printJson, type StoredDeps, withStore } from './stored.ts';

/** `k8s-storage incident ID`. */
export function addIncidentWord(program: Command, deps: StoredDeps): void {
  program
    .command('incident <id>')
    .description('show one incident with its findings and plans')
    .option('--output <format>', 'text or json', 'text')
    .action(async (id: string, options: { readonly output: string }) => {
      const format = output(options.output);
      await withStore(deps, async (store) => {
        const incident = incidentIn(await getIncident(store, id), 'en');
        const plans = (await store.plansOfIncident(id)).map((plan) => planIn(plan, 'en'));
        if (format === 'json') {
          printJson(deps, incidentJson(incident, plans));
          return;
        }
        const place = incident.thread === null ? incident.channel : `${incident.channel} ${incident.thread}`;
        const lines = [
          `${incident.id}: ${describeScope(incident.scope)} in cluster ${incident.cluster}`,
          `state      ${describeIncidentState(incident.state).en}`,
          `opened     ${incident.openedAt}${incident.requester === null ? '' : ` by ${incident.requester}`}`,
          ...(incident.resolvedAt === null ? [] : [`resolved   ${incident.resolvedAt}`]),
          `thread     ${place}`,
          ...(incident.problem === null ? [] : [`problem    ${incident.problem}`]),
        ];
        for (const finding of incident.report?.findings ?? []) {
          lines.push(
            `finding    ${finding.id} ${finding.fault} (${finding.verdict}, ${finding.severity}): ${describeRef(finding.subject)}`,
            `           ${finding.summary}`,
          );
        }
        for (const plan of plans) lines.push(`plan       ${planLine(plan)}`);
        deps.out(`${lines.join('\n')}\n`);
      });
    });
}
