import type { Deps } from '../src/deps.ts';
import { Transient } from '../src/domain/errors.ts';

const SWEEP_MS = 2000;
/** What was woken is left alone for that long, so that work under way is not enqueued again and again. */
const AGAIN_AFTER_MS = 15_000;

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

/** One pass. */
export async function sweepOnce(deps: Pick<Deps, 'store' | 'queue' | 'log'>): Promise<void> {
  try {
    await deps.store.expireDue();
    const { jobs } = await deps.store.due({ againAfterMs: AGAIN_AFTER_MS });
    for (const job of jobs) await deps.queue.enqueue(job);
  } catch (error) {
    const says = error instanceof Error ? error.message : String(error);
    if (error instanceof Transient) deps.log.warn('sweep: database or queue not reachable', { reason: says });
    else deps.log.error('sweep failed', { reason: says });
  }
}
