import type { Deps } from '../src/deps.ts';

/** Deliveries that one transaction takes apart: enough that a storm is a few dozen of them. */
const AT_ONCE = 200;

/**
 * Takes the deliveries of alerts apart, all that wait: each alert is kept, opens or joins an incident, or ends. What it
 * opens is diagnosed by reading, and nothing else; only people approve.
 */
export async function foldAlerts(deps: Deps, signal: AbortSignal): Promise<void> {
  const { incidentChannel: channel } = deps.settings;
  if (channel === undefined) return;
  const clusters = [...deps.clusters.keys()];
  for (;;) {
    if (signal.aborted) return;
    const { deliveries, incidents } = await deps.store.foldAlerts({
      clusters,
      channel,
      most: AT_ONCE,
      newId: deps.ids.next,
    });
    for (const id of incidents) await deps.queue.enqueue({ kind: 'diagnose', id, n: deps.clock.now() });
    if (deliveries < AT_ONCE) return;
  }
}
