import { diagnose, needsOf } from '../../../src/diagnose.ts';
import type { Cluster } from '../../../src/domain/cluster.ts';
import type { Report } from '../../../src/domain/report.ts';
import { openOneReader } from '../../../src/kube/clusters.ts';
import { withInventory } from '../../../src/kube/inventory.ts';
import { catalogue } from '../../../src/wire.ts';
import type { Bed } from './bed.ts';
import { backendOf } from './inventory.ts';
import { Recording } from './record.ts';
import { linesOf } from './report.ts';

/** The whole cluster through the product's reader under its read role, that much later than it is. */
export async function diagnoseAll(
  bed: Bed,
  laterMs = 0,
): Promise<{ readonly report: Report; readonly cluster: Cluster; readonly objects: readonly unknown[] }> {
  const recording = new Recording();
  const now = () => bed.now() + laterMs;
  const settings = { kubeconfig: bed.credentials.kubeconfig('read'), home: undefined, allowedPlugins: [] };
  const reader = withInventory(
    openOneReader(settings, undefined, { clock: { now }, onRaw: recording.onRaw, usage: bed.usage }),
    backendOf(bed, now),
  );
  const scope = { kind: 'Cluster' } as const;
  const signal = AbortSignal.timeout(60_000);
  const { cluster, cost } = await reader.read({ scope, needs: needsOf(catalogue, scope) }, signal);
  return { report: diagnose(cluster, scope, catalogue, cost), cluster, objects: recording.objects() };
}

/** What is said of the whole cluster at a moment in between, as lines; the clock stays where it is. */
export async function findingsOf(bed: Bed, laterMs: number): Promise<readonly string[]> {
  return linesOf((await diagnoseAll(bed, laterMs)).report);
}
