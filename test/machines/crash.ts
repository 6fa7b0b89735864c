import { type FaultPoint, faultPoints } from '../../src/fault-points.ts';
import { remediate } from '../../src/remediate.ts';
import { Crash, crashAt, type World } from '../support/execution.ts';

const PLAN = 'pln-1';
const signal = new AbortController().signal;

/** Every point of the protocol at which the process of an execution may end. */
export const executorPoints = faultPoints.filter((point) => point.startsWith('executor.') && !point.includes('.in_'));

/** Runs a process that ends at a point of the protocol, then others until nothing changes any more. */
export async function runWithCrash(world: World, point: FaultPoint, n: number): Promise<void> {
  await crash(world, point, n);
  for (let i = 0; i < 4; i += 1) {
    world.nowMs += 60_000;
    await remediate(PLAN, world.deps({ owner: `b${i}` }), signal);
  }
}

/** The machine handles errors; a crash is none, so it must get through every catch. */
async function crash(world: World, point: FaultPoint, n = 1): Promise<void> {
  const frozen = new Error('the process is gone');
  const hook = crashAt(point, n);
  let isGone = false;
  const deps = world.deps({
    fault: (passed) => {
      if (isGone) throw frozen;
      try {
        hook(passed);
      } catch (error) {
        isGone = true;
        throw error;
      }
    },
  });
  const store = new Proxy(deps.store, {
    get: (target, name): unknown => (isGone ? () => Promise.reject(frozen) : Reflect.get(target, name)),
  });
  try {
    await remediate(PLAN, { ...deps, store }, signal);
  } catch (error) {
    if (!(error instanceof Crash) && error !== frozen) throw error;
  }
}
