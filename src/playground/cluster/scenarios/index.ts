import { claimFillingUp } from './claim-filling-up.ts';
import { claimTerminating } from './claim-terminating.ts';
import { classOrZone } from './class-or-zone.ts';
import type { Scenario } from './define.ts';
import { incident } from './incident.ts';
import { multiAttach } from './multi-attach.ts';
import { rolloutDeadlock } from './rollout-deadlock.ts';
import { volumeLeak } from './volume-leak.ts';

/** Every scenario of the playground, in the order of its menu: the incident first. */
export const scenarios: readonly Scenario[] = [
  incident,
  claimTerminating,
  volumeLeak,
  multiAttach,
  rolloutDeadlock,
  classOrZone,
  claimFillingUp,
];

/** Finds a scenario by its id. */
export function findScenario(id: string): Scenario | undefined {
  return scenarios.find((scenario) => scenario.id === id);
}
