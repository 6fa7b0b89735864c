import { describe, expect, it } from 'vitest';
import { type SweepDeps, sweepOnce } from '../../jobs/sweep.ts';
import { Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import { recordingLog } from '../slack/support/samples.ts';

function sweeping(over: Partial<SweepDeps['store']> = {}) {
  const did: string[] = [];
  const log = recordingLog();
  const deps: SweepDeps = {
    store: {
      expireDue: () => Promise.resolve(0),
      due: () => Promise.resolve({ jobs: [{ kind: 'refresh', id: 'inc-1', n: 1 }] }),
      purge: ({ deliveriesAfterMs }) => {
        did.push(`purged after ${deliveriesAfterMs / 86_400_000} d`);
        return Promise.resolve(1);
      },
      ...over,
    },
    queue: { enqueue: ({ kind, id }) => Promise.resolve(void did.push(`woke ${kind} ${id}`)) },
    log,
  };
  return { did, log, run: () => sweepOnce(deps) };
}

describe('a pass of the sweep', () => {
  it('wakes what is due first, then removes deliveries of alerts that are a week old', async () => {
    const { did, run } = sweeping();
    await run();
    expect(did).toEqual(['woke refresh inc-1', 'purged after 7 d']);
  });

  it.each([
    ['the database is away', { expireDue: () => Promise.reject(new Transient(verbatim('away'))) }],
    ['nothing can be removed', { purge: () => Promise.reject(new Error('no')) }],
  ])('ends well when %s', async (_, over) => {
    const { log, run } = sweeping(over);
    await run();
    expect(log.lines.length).toBe(1);
  });
});
