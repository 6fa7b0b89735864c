import type { Deps } from '../src/deps.ts';
import { Transient } from '../src/domain/errors.ts';

const SWEEP_MS = 2000;
/** What was woken is left alone for that long, so that work under way is not enqueued again and again. */
const AGAIN_AFTER_MS = 15_000;

/** So long what a sender of alerts delivered is kept after it was taken apart; the alerts themselves are kept with their incidents. */
const DELIVERIES_KEPT_MS = 7 * 86_400_000;

/**
 * Finds what the tables say is due and wakes somebody for it, for as long as the process lives. It is what makes an
 * emptied queue, a crashed worker and a lost wake-up cost time and nothing else, so it never stops for an error.
 */
export async function sweep(deps: Pick<Deps, 'store' | 'queue' | 'log' | 'sleep'>, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sweepOnce(deps);
    try {
      await deps.sleep(SWEEP_MS, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** What one pass needs. */
export interface SweepDeps {
  readonly store: Pick<Deps['store'], 'expireDue' | 'due' | 'purge'>;
  readonly queue: Pick<Deps['queue'], 'enqueue'>;
  readonly log: Deps['log'];
}

/** One pass. */
export async function sweepOnce(deps: SweepDeps): Promise<void> {
  try {
    await deps.store.expireDue();
    const { jobs } = await deps.store.due({ againAfterMs: AGAIN_AFTER_MS });
    for (const job of jobs) await deps.queue.enqueue(job);
    await deps.store.purge({ deliveriesAfterMs: DELIVERIES_KEPT_MS });
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error);
    if (error instanceof Transient) deps.log.warn('sweep: database or queue not reachable', { reason: says });
    else deps.log.error('sweep failed', { reason: says });
  }
}
