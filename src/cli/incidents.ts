import type { Command } from 'commander';
import type { Incident } from '../domain/incident.ts';
import { incidentIn, planIn } from '../domain/spoken.ts';
import type { Language } from '../domain/text.ts';
import type { Locale } from '../locales/en.ts';
import { locales } from '../locales/index.ts';
import type { Store } from '../ports.ts';
import { Exit } from './deps.ts';
import { languageOption } from './language.ts';
import { incidentJson, output, printJson, type StoredDeps, withStore } from './stored.ts';

const MOST = 100;

/** `k8s-storage incidents`: the newest, whether they are open or not. */
export function addIncidentsWord(program: Command, deps: StoredDeps): void {
  program
    .command('incidents')
    .description('list the incidents, newest first')
    .option('--output <format>', 'text or json', 'text')
    .addOption(languageOption())
    .action(async (options: { readonly output: string; readonly language: Language }) => {
      const format = output(options.output);
      const { language } = options;
      const t = locales[language];
      await withStore(deps, async (store) => {
        const incidents = await store.listIncidents({ onlyOpen: false, limit: MOST });
        if (format === 'json') {
          const documents = [];
          for (const incident of incidents) {
            const plans = (await store.plansOfIncident(incident.id)).map((plan) => planIn(plan, language));
            documents.push(incidentJson(incidentIn(incident, language), plans));
          }
          printJson(deps, documents);
          return;
        }
        if (incidents.length === 0) deps.out(`${t.stored.none}\n`);
        for (const incident of incidents) deps.out(`${await lineOf(incident, store, t)}\n`);
      });
    });
}

async function lineOf(incident: Incident, store: Store, t: Locale): Promise<string> {
  const plans = await store.plansOfIncident(incident.id);
  const waiting = plans.filter(({ state }) => state === 'AWAITING_APPROVAL').length;
  const parts = [
    incident.id,
    t.incidentState(incident.state),
    incident.cluster,
    t.scope(incident.scope),
    t.stored.opened(incident.openedAt),
  ];
  if (waiting > 0) parts.push(t.stored.waiting(waiting));
  return parts.join('  ');
}

/** The incident, or exit code 2. */
export async function getIncident(store: Store, id: string): Promise<Incident> {
  const incident = await store.findIncident(id);
  if (!incident) throw new Exit(2, `there is no incident ${id}; k8s-storage incidents lists them`);
  return incident;
}
