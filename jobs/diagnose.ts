import { closest, distance } from 'fastest-levenshtein';
import type { Deps } from '../src/deps.ts';
import { diagnose as judge, needsOf } from '../src/diagnose.ts';
import { chainOf, type FindingChain } from '../src/domain/chain.ts';
import type { Cluster } from '../src/domain/cluster.ts';
import { Refused, Transient } from '../src/domain/errors.ts';
import { afterDiagnosis, type Incident, isOver } from '../src/domain/incident.ts';
import { quietUntil } from '../src/domain/quiet-hours.ts';
import type { Report } from '../src/domain/report.ts';
import { findResourceOfKind } from '../src/domain/resources.ts';
import { describeScope, type ScopeRef } from '../src/domain/scope.ts';
import { en, sentences, type Text, textIn, verbatim, zh } from '../src/domain/text.ts';
import { type ClaimUsage, fillingUpAlerts, usageOfAlert } from '../src/domain/usage.ts';
import type { NewPlan } from '../src/ports.ts';

/** Nobody asks again for what nobody asked for. */
const TRY_AGAIN_SECONDS = 60;

/** Reads the cluster once, judges it, and stores the report with a plan for each offer; the thread follows from that. */
export async function diagnose(incidentId: string, deps: Deps, signal: AbortSignal): Promise<void> {
  const incident = await deps.store.findIncident(incidentId);
  if (!incident || isOver(incident.state) || !isDue(incident, deps.clock.now())) return;
  const access = deps.clusters.get(incident.cluster);
  if (!access)
    return giveUp(
      incident,
      {
        en: en`Cluster ${incident.cluster} is not configured any more.`,
        zh: zh`集群 ${incident.cluster} 已不在配置中。`,
      },
      deps,
    );
  try {
    const { cluster, cost } = await access.reader.read(
      {
        scope: incident.scope,
        needs: needsOf(deps.catalogue, incident.scope),
        told: await toldUsage(incident.cluster, deps),
      },
      signal,
    );
    noteUsage(cluster, deps);
    const missing = whyMissing(incident.scope, cluster);
    if (missing !== undefined) return await giveUp(incident, missing, deps, { isOver: incident.origin !== 'person' });
    const report = judge(cluster, incident.scope, deps.catalogue, cost);
    const firing = await deps.store.firingOf(incident.id);
    const { shown } = await deps.store.recordDiagnosis({
      incident: incident.id,
      report,
      chains: chainsOf(report, cluster, deps),
      asked: incident.diagnoses,
      plans: plansOf(incident, report, deps),
      ...afterDiagnosis(report, { origin: incident.origin, ...firing }),
      approvalTtlMs: deps.settings.approvalTtlMs,
      quietUntil: quietUntilOf(deps),
    });
    for (const id of new Set([incident.id, shown]))
      await deps.queue.enqueue({ kind: 'refresh', id, n: deps.clock.now() });
  } catch (error) {
    if (!(error instanceof Transient || error instanceof Refused) || signal.aborted) throw error;
    await giveUp(incident, error.says, deps, incident.origin === 'person' ? {} : { recheckSeconds: TRY_AGAIN_SECONDS });
  }
}

/** What alerts that still fire say of how full claims are: enough where no Prometheus is asked. */
export async function toldUsage(cluster: string, { store }: Pick<Deps, 'store'>): Promise<readonly ClaimUsage[]> {
  const alerts = await store.firingAlerts(cluster, Object.keys(fillingUpAlerts));
  return alerts.flatMap((alert) => usageOfAlert(alert) ?? []);
}

/** Usage that cannot be read costs no diagnosis, and is no news for a thread. */
export function noteUsage({ identity, usage }: Cluster, { log }: Pick<Deps, 'log'>): void {
  if (usage.unread === undefined) return;
  log.warn('usage was not read', { cluster: identity.name, reason: textIn(usage.unread, 'en') });
}

function quietUntilOf({ settings, clock }: Deps): string | null {
  const until = settings.quietHours && quietUntil(clock.now(), settings.quietHours);
  return until === undefined ? null : new Date(until).toISOString();
}

/** Many may ask at the same time: one diagnosis answers them all, and the wake-ups of the others find nothing to do. */
function isDue({ diagnoses, answered, recheckAt }: Incident, now: number): boolean {
  return diagnoses > answered || (recheckAt !== null && Date.parse(recheckAt) <= now);
}

/** Pictures in one thread: that of the leading cause. More would push the words away, and cost a second of a core each. */
const MOST_PICTURES = 1;

/** What the thread draws. A mistake in it costs the picture, never the diagnosis. */
function chainsOf(report: Report, cluster: Cluster, deps: Deps): readonly FindingChain[] {
  const causes = report.findings.filter(({ causedBy }) => causedBy === null).slice(0, MOST_PICTURES);
  try {
    return causes.flatMap((finding) => {
      const chain = chainOf(finding, cluster);
      return chain ? [{ finding: finding.id, chain }] : [];
    });
  } catch (error) {
    deps.log.error('the chain of a finding could not be made', { error: String(error) });
    return [];
  }
}

async function giveUp(
  incident: Incident,
  problem: Text,
  deps: Deps,
  options: { readonly recheckSeconds?: number; readonly isOver?: boolean } = {},
): Promise<void> {
  deps.log.warn('diagnosis could not be made', { incident: incident.id, problem: textIn(problem, 'en') });
  await deps.store.recordProblem(incident.id, problem, options);
  await deps.queue.enqueue({ kind: 'refresh', id: incident.id, n: deps.clock.now() });
}

function plansOf(incident: Incident, report: Report, deps: Deps): readonly NewPlan[] {
  const { uid } = report.cluster;
  if (uid === null) return [];
  return report.findings.flatMap((finding) =>
    finding.offers
      .filter((offer) => offer.blocked === null && offer.digest !== null)
      .map((offer) => ({
        id: deps.ids.next('pln'),
        finding: finding.id,
        fault: finding.fault,
        offer,
        title:
          deps.catalogue.remediations.find(({ id }) => id === offer.remediation)?.title(offer.params) ??
          verbatim(offer.remediation),
        clusterUid: uid,
        requester: incident.requester,
      })),
  );
}

/** Why the object asked about is not there, with the names it may have been meant for; undefined when it is there or was not read. */
export function whyMissing(scope: ScopeRef, cluster: Cluster): Text | undefined {
  if (scope.kind === 'Cluster') return undefined;
  const resource = findResourceOfKind(scope.kind);
  if (!resource || !cluster.isRead(resource) || cluster.findObject(resource, scope.namespace, scope.name))
    return undefined;
  const near = nearNames(
    scope.name,
    cluster.objects[resource].filter((object) => object.namespace === scope.namespace).map((object) => object.name),
  );
  const names: Text = { en: near.join(' or '), zh: near.join(' 或 ') };
  const where = cluster.identity.name ?? '';
  return sentences(
    {
      en: en`There is no ${describeScope(scope)} in cluster ${where}.`,
      zh: zh`集群 ${where} 中没有 ${describeScope(scope)}。`,
    },
    near.length === 0 ? undefined : { en: en`Did you mean ${names}?`, zh: zh`你指的是 ${names} 吗？` },
  );
}

const MOST_NEAR_NAMES = 3;

/** The names that are close to a name that does not exist, closest first. */
export function nearNames(name: string, names: readonly string[]): readonly string[] {
  const first = names.length === 0 ? undefined : closest(name, names);
  if (first === undefined) return [];
  return names
    .filter((candidate) => candidate === first || distance(name, candidate) <= 3)
    .toSorted((a, b) => distance(name, a) - distance(name, b))
    .slice(0, MOST_NEAR_NAMES);
}
