import type { Deps } from '../src/deps.ts';
import { diagnose as judge, needsOf } from '../src/diagnose.ts';
import type { Cluster } from '../src/domain/cluster.ts';
import { Refused, Transient } from '../src/domain/errors.ts';
import { type Cause, causeKey } from '../src/domain/incident.ts';
import type { Ref } from '../src/domain/ref.ts';
import { isTrouble, type ReadCost, type Report } from '../src/domain/report.ts';
import { findResourceOfKind, type KindName, resources } from '../src/domain/resources.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import { noteUsage, toldUsage } from './diagnose.ts';

/** One critical trouble of a cluster, and the object by which a targeted diagnosis finds it. */
interface Seen {
  readonly cause: Cause;
  readonly scope: ScopeRef;
}

const WHOLE: ScopeRef = { kind: 'Cluster' };

/**
 * The bot's own look at a cluster, as a whole: what is critical opens an incident, or joins the one that its cause has;
 * incidents whose cause it does not see any more are diagnosed again, which is what resolves them. It judges nothing in
 * the place of a diagnosis, and posts nothing itself.
 */
export async function scan(id: string, deps: Deps, signal: AbortSignal): Promise<void> {
  const name = await deps.store.beginScan(id);
  const { incidentChannel: channel } = deps.settings;
  const access = name === undefined ? undefined : deps.clusters.get(name);
  if (name === undefined || channel === undefined || !access) return;
  try {
    const read = await access.reader.read(
      { scope: WHOLE, needs: needsOf(deps.catalogue, WHOLE), told: await toldUsage(name, deps) },
      signal,
    );
    noteUsage(read.cluster, deps);
    const report = judge(read.cluster, WHOLE, deps.catalogue, read.cost);
    const seen = troublesOf(report, read.cluster, read.cost, deps);
    const asking = await deps.store.recordScan({
      cluster: name,
      channel,
      seen,
      all: report.findings.filter(({ causedBy }) => causedBy === null),
      newId: deps.ids.next,
    });
    for (const incident of asking) await deps.queue.enqueue({ kind: 'diagnose', id: incident, n: deps.clock.now() });
  } catch (error) {
    if (!(error instanceof Transient || error instanceof Refused) || signal.aborted) throw error;
    // It comes again by itself; that the cluster cannot be read stands in readyz.
    deps.log.warn('a cluster could not be looked at', { cluster: name, reason: error.message });
  }
}

function troublesOf(report: Report, cluster: Cluster, cost: ReadCost, deps: Deps): readonly Seen[] {
  return report.findings
    .filter((finding) => finding.causedBy === null && isTrouble(finding) && finding.severity === 'critical')
    .map(({ fault, subject, affected, involved }) => {
      const cause = { fault, subject };
      const scopes = [subject, ...affected, ...involved].flatMap(scopeOf);
      const finds = (scope: ScopeRef) =>
        judge(cluster, scope, deps.catalogue, cost).findings.some(
          (finding) => finding.causedBy === null && causeKey(finding) === causeKey(cause),
        );
      return { cause, scope: scopes.slice(0, MOST_TRIED).find(finds) ?? WHOLE };
    });
}

/** Of the objects of a trouble so many are tried for one that leads to it. */
const MOST_TRIED = 6;

/** An object that there is, of a kind that can be asked about. */
function scopeOf({ kind, namespace, name, uid }: Ref): readonly ScopeRef[] {
  const resource = findResourceOfKind(kind);
  if (uid === null || resource === undefined || resources[resource].words.length === 0) return [];
  const known: KindName = resources[resource].kind;
  return [{ kind: known, namespace, name }];
}
