import { type Answered, startCrowd } from './crowd.ts';
import type { Town } from './town.ts';
import { until } from './town.ts';

const REQUESTER = 'U0000';
const PEOPLE = 50;
const CLICKS = 1000;
const WARM_UP = 200;

/** Of fifty people the first one asks, five are guests, two are bots and two have left. */
export const sortOf = (user: string) => {
  const no = Number(user.slice(1));
  if (no % 10 === 9) return 'guest';
  if (no === 11 || no === 12) return 'bot';
  return no === 21 || no === 22 ? 'gone' : 'member';
};

export interface Rush {
  readonly plan: string;
  readonly answers: readonly Answered[];
  readonly milliseconds: number;
  /** Who may vote on it: everybody but the requester, guests, bots and those who have left. */
  readonly eligible: ReadonlySet<string>;
}

/** A thousand approvals of one plan at the same moment, on two web processes; the plan is carried out when this returns. */
export async function rush(town: Town): Promise<Rush> {
  const crowd = await startCrowd(sortOf);
  try {
    const [first, second] = await Promise.all([
      town.start('web', crowd.environment),
      town.start('web', crowd.environment),
      town.start('worker', crowd.environment),
      town.start('remediator', crowd.environment),
    ]);
    town.cluster.loadScenario('multi-attach');
    await crowd.command(first.address, REQUESTER, 'diagnose');
    const plan = await until(async () => {
      const [row] = await town.sql<{ id: string }>(
        `select id from plan where remediation = 'taint-node-out-of-service'`,
      );
      return row?.id;
    }, 'a plan');
    const everybody = Array.from({ length: PEOPLE }, (_, no) => `U${String(no).padStart(4, '0')}`);
    const values = {
      'proof/node-off-proof': 'The cloud console says that n1 is terminated.',
      reason: 'The shop is down and n1 will not come back.',
    };
    // Two processes that have been at work for a while, as they have been when a rush comes.
    for (const { address } of [first, second])
      await Promise.all(
        Array.from({ length: WARM_UP }, () => crowd.submit(address, REQUESTER, 'pln-of-nobody', values)),
      );
    const began = performance.now();
    const answers = await Promise.all(
      Array.from({ length: CLICKS }, (_, no) =>
        crowd.submit(no % 2 === 0 ? first.address : second.address, everybody[no % PEOPLE] ?? REQUESTER, plan, values),
      ),
    );
    const milliseconds = performance.now() - began;
    await town.reaches(plan, 'SUCCEEDED', 'FAILED', 'NEEDS_ATTENTION', 'REJECTED');
    await until(async () => {
      const [row] = await town.sql<{ open: number }>(
        'select count(*)::integer as open from inbox where done_at is null',
      );
      return row?.open === 0 ? true : undefined;
    }, 'the last click to be looked at');
    const eligible = new Set(everybody.filter((user) => user !== REQUESTER && sortOf(user) === 'member'));
    return { plan, answers, milliseconds, eligible };
  } finally {
    await crowd.close();
  }
}
