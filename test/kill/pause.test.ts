import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { broken } from './checker.ts';
import { channel, people, startTown, type Town, until } from './town.ts';
import { auditRowsOf } from './trail.ts';

/** The emergency brake: at most one write more, and nothing goes on by itself. */
let town: Town;

beforeAll(async () => {
  town = await startTown();
  await Promise.all([town.open(), town.start('remediator')]);
});
afterAll(() => town?.close());

function wasTold(text: RegExp): Promise<true> {
  return until(
    () => (town.slack.messages(channel, people.sam).some((message) => text.test(message.text)) ? true : undefined),
    `${text} told to Sam`,
  );
}

async function successorOf(plan: string): Promise<string> {
  return until(
    async () =>
      (await town.sql<{ successor: string | null }>('select successor from plan_state where plan = $1', [plan]))[0]
        ?.successor ?? undefined,
    `what follows ${plan}`,
  );
}

describe('a pause between two writes', () => {
  let plan = '';
  let rest = '';

  it('halts the plan before its next write', async () => {
    const offered = await town.ask('class-or-zone', 'recreate-pending-claim');
    plan = offered.plan;
    // The claim stays Terminating, so the plan waits between its writes.
    const stop = town.onChange('persistentvolumeclaims', 'MODIFIED', () => {
      stop();
      town.cluster.cluster.stop('kube-controller-manager');
    });
    expect(await town.click('sam', offered)).toEqual({ ok: true });
    await until(() => (town.cluster.journal.at(-1)?.verb === 'delete' ? true : undefined), 'the first write');
    await town.say('sam', '/k8s-storage pause');
    await wasTold(/^Paused for all clusters/);
    town.cluster.cluster.start('kube-controller-manager');
    const began = performance.now();
    await town.reaches(plan, 'HALTED');
    expect(performance.now() - began).toBeLessThan(5000);
    await town.quiet(offered.incident);
    expect(await broken(town, plan, 'HALTED', 1)).toEqual([]);
  });

  it('ends by resume: what is left becomes a new plan, which needs new votes and is then carried out', async () => {
    await town.say('sam', '/k8s-storage resume');
    await wasTold(/^Resumed for all clusters/);
    rest = await successorOf(plan);
    const offered = await town.offerOf(rest);
    expect(await town.stateOf(plan)).toBe('SUPERSEDED');
    expect(await town.stateOf(rest)).toBe('AWAITING_APPROVAL');
    expect(await town.sql('select 1 from vote where plan = $1', [rest])).toEqual([]);
    expect(await town.click('sam', offered)).toEqual({ ok: true });
    await town.reaches(rest, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION', 'SUPERSEDED');
    await town.quiet(offered.incident);
    expect(await broken(town, rest)).toEqual([]);
  });
});

describe('a pause before the start', () => {
  it('keeps an approved plan from starting, until it is lifted', async () => {
    await town.say('sam', '/k8s-storage pause');
    await until(async () => ((await town.sql('select 1 from pause')).length > 0 ? true : undefined), 'the pause');
    const offered = await town.ask('claim-terminating', 'set-reclaim-policy-retain');
    expect(await town.click('sam', offered)).toEqual({ ok: true });
    await town.reaches(offered.plan, 'APPROVED');
    await town.quiet(offered.incident);
    await town.say('sam', '/k8s-storage resume');
    await town.reaches(offered.plan, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION', 'EXPIRED');
    await town.quiet(offered.incident);
    expect(await broken(town, offered.plan)).toEqual([]);
    const events = (await auditRowsOf(town)).map(({ event }) => event);
    const claimed = events.find((event) => event.kind === 'claim' && event.plan === offered.plan);
    const resumed = events.findLast((event) => event.kind === 'resumed');
    expect(claimed?.seq).toBeGreaterThan(resumed?.seq ?? Number.POSITIVE_INFINITY);
  });
});
