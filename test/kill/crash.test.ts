import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FaultPoint, faultPoints } from '../../src/fault-points.ts';
import type { BotProcess } from '../support/processes.ts';
import { broken } from './checker.ts';
import { killedBy, type Offered, people, startTown, type Town } from './town.ts';
import { auditRowsOf } from './trail.ts';

/**
 * `kill -9` at every named point: in a plan of one write (a patch) and in one of two (a delete and a create). Whatever
 * process comes next brings the plan to its end: done once, never twice, never lost.
 */
const oneWrite = ['claim-terminating', 'set-reclaim-policy-retain'] as const;
const twoWrites = ['class-or-zone', 'recreate-pending-claim'] as const;

const single: readonly (readonly [FaultPoint, string, number, readonly [string, string]])[] = [
  ['executor.before_claim', 'a plan of one write', 1, oneWrite],
  ['executor.after_claim', 'a plan of one write', 1, oneWrite],
  ['executor.in_intent', 'a plan of one write', 1, oneWrite],
  ['executor.after_intent', 'a plan of one write', 1, oneWrite],
  ['executor.request_sent', 'a plan of one write', 1, oneWrite],
  ['executor.after_reply', 'a plan of one write', 1, oneWrite],
  ['executor.in_outcome', 'a plan of one write', 1, oneWrite],
  ['executor.after_outcome', 'a plan of one write', 1, oneWrite],
  ['executor.before_finish', 'a plan of one write', 1, oneWrite],
  ['executor.after_finish', 'a plan of one write', 1, oneWrite],
  ['executor.request_sent', 'the first of two writes', 1, twoWrites],
  ['executor.request_sent', 'the second of two writes', 2, twoWrites],
];

/** One plan whose every process dies, each a little later than the one before. */
const chain: readonly FaultPoint[] = [
  'executor.after_reply',
  'executor.in_outcome',
  'executor.after_outcome',
  'executor.in_intent',
  'executor.after_intent',
  'executor.after_reply',
  'executor.in_outcome',
  'executor.after_outcome',
  'executor.before_finish',
];

const passed = new Set<FaultPoint>();
let town: Town;
let web: BotProcess;

beforeAll(async () => {
  town = await startTown();
  ({ web } = await town.open());
});
afterAll(() => town?.close());

async function approved(scenario: string, remediation: string): Promise<Offered> {
  const offered = await town.ask(scenario, remediation);
  expect(await town.click('sam', offered)).toEqual({ ok: true });
  await town.reaches(offered.plan, 'APPROVED');
  return offered;
}

async function dieAt(point: FaultPoint, n: number, plan: string): Promise<void> {
  await killedBy(town.startDoomed(point, n, 'kill'));
  passed.add(point);
  await town.expireLease(plan);
}

/** A process without faults takes the plan over and ends it. */
async function finish({ plan, incident }: Offered): Promise<void> {
  const next = await town.start('remediator');
  await town.reaches(plan, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION', 'HALTED', 'SUPERSEDED');
  await town.quiet(incident);
  await next.stop();
}

describe('a remediator that is killed', () => {
  it.each(single)(
    'at %s of %s: it is done once, never twice, never lost',
    async (point, _, n, [scenario, remediation]) => {
      const offered = await approved(scenario, remediation);
      await dieAt(point, n, offered.plan);
      await finish(offered);
      expect(await broken(town, offered.plan)).toEqual([]);
    },
  );

  it('nine times in one plan of two writes: it is done once, never twice, never lost', async () => {
    const offered = await approved(...twoWrites);
    for (const point of chain) await dieAt(point, 1, offered.plan);
    await finish(offered);
    expect(await broken(town, offered.plan)).toEqual([]);
  });

  it.each([
    ['a patch', oneWrite, 'persistentvolumes', 'MODIFIED'],
    ['a delete', twoWrites, 'persistentvolumeclaims', 'MODIFIED'],
    ['a create', twoWrites, 'persistentvolumeclaims', 'ADDED'],
  ] as const)(
    'when %s has had its effect and the reply is on its way: it is done once',
    async (_, [scenario, remediation], resource, type) => {
      const offered = await approved(scenario, remediation);
      const doomed = town.launch('remediator');
      // Called within the API server, before it answers.
      const stop = town.onChange(resource, type, () => doomed.kill('SIGKILL'));
      await killedBy(doomed);
      stop();
      await town.expireLease(offered.plan);
      await finish(offered);
      expect(await broken(town, offered.plan)).toEqual([]);
    },
  );
});

describe('a web process that is killed', () => {
  it('before it has taken a click in: the click is lost, the person sees it, and clicks again', async () => {
    const offered = await town.ask(...oneWrite);
    const doomed = await town.start('web', { K8S_STORAGE_FAULTS: 'intake.before_commit=kill' });
    town.route(doomed);
    expect(await town.click('sam', offered)).toEqual({
      ok: false,
      problem: 'We had some trouble connecting. Try again? (dispatch_failed)',
    });
    await killedBy(doomed);
    passed.add('intake.before_commit');
    town.route(web);
    expect(await town.sql('select 1 from vote where plan = $1', [offered.plan])).toEqual([]);
    expect(await town.stateOf(offered.plan)).toBe('AWAITING_APPROVAL');
    expect(await town.click('sam', offered)).toEqual({ ok: true });
    await town.reaches(offered.plan, 'APPROVED');
    await finish(offered);
    expect(await broken(town, offered.plan)).toEqual([]);
  });

  it('between its commit and the acknowledgement: the click counts once, though the person clicks again', async () => {
    const offered = await town.ask(...oneWrite);
    const doomed = await town.start('web', { K8S_STORAGE_FAULTS: 'intake.after_commit=kill' });
    town.route(doomed);
    expect(await town.click('sam', offered)).toMatchObject({ ok: false });
    await killedBy(doomed);
    passed.add('intake.after_commit');
    town.route(web);
    await town.click('sam', offered);
    await town.reaches(offered.plan, 'APPROVED');
    await finish(offered);
    expect(await town.sql('select person from vote where plan = $1', [offered.plan])).toEqual([{ person: people.sam }]);
    const votes = (await auditRowsOf(town)).filter(({ event }) => event.kind === 'vote' && event.plan === offered.plan);
    expect(votes).toHaveLength(1);
    expect(await broken(town, offered.plan)).toEqual([]);
  });
});

it('every point of the step protocol was passed by a process that died there', () => {
  expect(faultPoints.filter((point) => !passed.has(point))).toEqual([]);
});
