import type { Command } from 'commander';
import { describeIncidentState, type Incident } from '../domain/incident.ts';
import { describeScope } from '../domain/scope.ts';
import { incidentIn, planIn } from '../domain/spoken.ts';
import type { Store } from '../ports.ts';
import { Exit } from './deps.ts';
import { incidentJson, output, printJson, type StoredDeps, withStore } from './stored.ts';

const MOST = 100;

/** `k8s-storage incidents`: the newest, whether they are open or not. */
export function addIncidentsWord(program: Command, deps: StoredDeps): void {
  program
    .command('incidents')
    .description('list the incidents, newest first')
    .option('--output <format>', 'text or json', 'text')
    .action(async (options: { readonly output: string }) => {
      const format = output(options.output);
      await withStore(deps, async (store) => {
        const incidents = await store.listIncidents({ onlyOpen: false, limit: MOST });
        if (format === 'json') {
          const documents = [];
          for (const incident of incidents) {
            const plans = (await store.plansOfIncident(incident.id)).map((plan) => planIn(plan, 'en'));
            documents.push(incidentJson(incidentIn(incident, 'en'), plans));
          }
          printJson(deps, documents);
          return;
        }
        if (incidents.length === 0) deps.out('no incidents\n');
        for (const incident of incidents) deps.out(`${await lineOf(incident, store)}\n`);
      });
    });
}

async function lineOf(incident: Incident, store: Store): Promise<string> {
  const plans = await store.plansOfIncident(incident.id);
  const waiting = plans.filter(({ state }) => state === 'AWAITING_APPROVAL').length;
  const parts = [
    incident.id,
    describeIncidentState(incident.state).en,
    incident.cluster,
    describeScope(incident.scope),
    `opened ${incident.openedAt}`,
  ];
  if (waiting > 0) parts.push(`${waiting} waiting for approval`);
  return parts.join('  ');
}

/** The incident, or exit code 2. */
export async function getIncident(store: Store, id: string): Promise<Incident> {
  const incident = await store.findIncident(id);
  if (!incident) throw new Exit(2, `there is no incident ${id}; k8s-storage incidents lists them`);
  return incident;
}
