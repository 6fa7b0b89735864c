import type { Incident } from '../../src/domain/incident.ts';
import type { Plan } from '../../src/domain/plan.ts';
import { type SpokenIncident, type SpokenPlan, storedReport } from '../../src/domain/spoken.ts';
import { verbatim } from '../../src/domain/text.ts';

/** A spoken incident as the store gives it: every sentence in each language. */
export function storedIncident(incident: SpokenIncident): Incident {
  return {
    ...incident,
    report: incident.report && storedReport(incident.report),
    problem: incident.problem === null ? null : verbatim(incident.problem),
  };
}

export function storedPlan(plan: SpokenPlan): Plan {
  return {
    ...plan,
    title: verbatim(plan.title),
    undo: verbatim(plan.undo),
    stateReason: plan.stateReason === null ? null : verbatim(plan.stateReason),
    steps: plan.steps.map((step) => ({ ...step, result: step.result === null ? null : verbatim(step.result) })),
  };
}
