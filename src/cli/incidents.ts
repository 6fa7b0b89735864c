import type { Command } from 'commander';
import { type Incident, isOver, RECENT_MS } from '../domain/incident.ts';
import { describeRef } from '../domain/ref.ts';
import { isTrouble, type Report } from '../domain/report.ts';
import { incidentIn, planIn, recentIn } from '../domain/spoken.ts';
import { duration, type Language, textIn } from '../domain/text.ts';
import type { Locale } from '../locales/en.ts';
import { locales } from '../locales/index.ts';
import type { Store } from '../ports.ts';
import { type CliDeps, Exit } from './deps.ts';
import { languageOption } from './language.ts';
import { incidentJson, output, printJson, type StoredDeps, withStore } from './stored.ts';

const MOST = 100;

interface Options {
  readonly output: string;
  readonly all?: boolean;
  readonly language: Language;
}

/** One incident, and what was seen of it. */
interface Listed {
  readonly incident: Incident;
  readonly seen: Report | null;
}

/** `k8s-storage incidents`: what is open, the most harmful first, then what ended within the week. */
export function addIncidentsWord(program: Command, deps: StoredDeps & Pick<CliDeps, 'err' | 'now'>): void {
  program
    .command('incidents')
    .description('list the incidents that are open, then those that ended within the last week')
    .option('--all', 'the newest of all, however long ago they ended')
    .option('--output <format>', 'text or json', 'text')
    .addOption(languageOption())
    .action(async (options: Options) => {
      const format = output(options.output);
      const { language } = options;
      const t = locales[language];
      await withStore(deps, async (store) => {
        const { listed, left } = await find(store, options.all === true);
        if (format === 'json') {
          const documents = [];
          for (const { incident } of listed) {
            const plans = (await store.plansOfIncident(incident.id)).map((plan) => planIn(plan, language));
            documents.push(incidentJson(incidentIn(incident, language), plans));
          }
          printJson(deps, documents);
        } else {
          if (listed.length === 0) deps.out(`${t.stored.none}\n`);
          for (const one of listed) deps.out(`${await lineOf(one, deps.now(), store, t)}\n`);
        }
        if (left > 0) deps.err(`${left} more are not listed; --all lists the newest of all\n`);
      });
    });
}

async function find(
  store: Store,
  isAll: boolean,
): Promise<{ readonly listed: readonly Listed[]; readonly left: number }> {
  if (isAll) {
    const incidents = await store.listIncidents({ onlyOpen: false, limit: MOST });
    return { listed: incidents.map((incident) => ({ incident, seen: incident.report })), left: 0 };
  }
  const { incidents, open, ended } = await store.listRecent({ withinMs: RECENT_MS, limit: MOST });
  return { listed: incidents, left: open + ended - incidents.length };
}

async function lineOf({ incident, seen }: Listed, now: number, store: Store, t: Locale): Promise<string> {
  const plans = await store.plansOfIncident(incident.id);
  const waiting = plans.filter(({ state }) => state === 'AWAITING_APPROVAL').length;
  const parts = [
    incident.id,
    t.incidentState(incident.state),
    incident.cluster,
    t.scope(incident.scope),
    t.stored.opened(incident.openedAt),
    t.stored.lasts(textIn(duration(lastsMs(incident, now)), t.language), isOver(incident.state)),
  ];
  if (waiting > 0) parts.push(t.stored.waiting(waiting));
  const findings = recentIn({ incident, seen }, t.language).seen?.findings ?? [];
  const cause = findings.find(isTrouble);
  if (cause === undefined) return parts.join('  ');
  const all = [...new Set(findings.filter(isTrouble).flatMap(({ affected }) => affected.map(describeRef)))];
  const suffers = all.length === 0 ? [] : [t.terminal.suffering(t.answers.and(all.slice(0, 3), all.length - 3))];
  return [...parts, t.ofSeverity(cause.severity, cause.summary), ...suffers].join('  ');
}

function lastsMs({ openedAt, resolvedAt }: Incident, now: number): number {
  return (resolvedAt === null ? now : Date.parse(resolvedAt)) - Date.parse(openedAt);
}

/** The incident, or exit code 2. */
export async function getIncident(store: Store, id: string): Promise<Incident> {
  const incident = await store.findIncident(id);
  if (!incident) throw new Exit(2, `there is no incident ${id}; k8s-storage incidents lists them`);
  return incident;
}
