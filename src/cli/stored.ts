import type { ScopeRef } from '../domain/scope.ts';
import type { SpokenIncident, SpokenPlan } from '../domain/spoken.ts';
import type { Store } from '../ports.ts';
import { type CliDeps, Exit } from './deps.ts';

/** What the words that read the database need. */
export type StoredDeps = Pick<CliDeps, 'out' | 'openStore'>;

/** What the words that read the database share: opening it, and the formats that other programs rely on. */
export async function withStore(deps: StoredDeps, work: (store: Store) => Promise<void>): Promise<void> {
  let store: Store;
  try {
    store = await deps.openStore();
  } catch (error) {
    throw new Exit(2, `the database could not be opened: ${error instanceof Error ? error.message : String(error)}`);
  }
  try {
    await work(store);
  } finally {
    await store.close();
  }
}

/** Exit code 2 for a format that does not exist. */
export function output(format: string): 'text' | 'json' {
  if (format !== 'text' && format !== 'json') throw new Exit(2, `--output is ${format}; write text or json`);
  return format;
}

export function printJson(deps: StoredDeps, value: unknown): void {
  deps.out(`${JSON.stringify(value, null, 2)}\n`);
}

export function incidentJson(incident: SpokenIncident, plans: readonly SpokenPlan[]) {
  return {
    id: incident.id,
    cluster: incident.cluster,
    subject: subjectOf(incident.scope),
    channel: incident.channel,
    thread: incident.thread,
    state: incident.state,
    findings: incident.report?.findings ?? [],
    plans: plans.map(planJson),
    problem: incident.problem,
    requester: incident.requester,
    openedAt: incident.openedAt,
    resolvedAt: incident.resolvedAt,
  };
}

export function planJson(plan: SpokenPlan) {
  return {
    id: plan.id,
    incident: plan.incident,
    remediation: plan.remediation,
    digest: plan.digest,
    risk: plan.risk,
    requester: plan.requester,
    state: plan.state,
    approveBy: plan.approveBy,
    executeBy: plan.executeBy,
    votes: plan.votes.map(({ user, decision, digest, proofs, at }) => ({ user, decision, digest, proofs, at })),
    steps: plan.steps.map(({ no, write, state, at }) => {
      const { verb, resource, namespace, name, uid } = write;
      return { no, verb, resource, namespace, name, uid, state, at };
    }),
    stateReason: plan.stateReason,
    successor: plan.successor,
  };
}

export function planLine(plan: SpokenPlan): string {
  return `${plan.id}  ${plan.state}  ${plan.remediation}  ${plan.title}`;
}

/** As the report names its scope. */
function subjectOf(scope: ScopeRef) {
  return scope.kind === 'Cluster'
    ? { kind: 'Cluster', namespace: null, name: null }
    : { kind: scope.kind, namespace: scope.namespace, name: scope.name };
}
