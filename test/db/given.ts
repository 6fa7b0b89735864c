import { expect } from 'vitest';
import type { Plan } from '../../src/domain/plan.ts';
import type { Risk } from '../../src/domain/remediation.ts';
import { digestOf, type Report } from '../../src/domain/report.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { verbatim } from '../../src/domain/text.ts';
import { createObject, deleteObject, toPlanned, type Write } from '../../src/domain/write.ts';
import type { Fence, NewPlan, Store } from '../../src/ports.ts';

/** Matchers of vitest are of type `any`; these are not. */
export const containing = (text: string): unknown => expect.stringContaining(text);
export const anyText: unknown = expect.any(String);

export const CLUSTER = 'prod';
export const CLUSTER_UID = 'cluster-uid';
export const MINUTES_15 = 900_000;
export const LEASE = 30_000;

export const report: Report = {
  version: 1,
  cluster: { name: CLUSTER, uid: CLUSTER_UID },
  now: '2026-11-30T12:00:00Z',
  scope: { kind: 'Pod', namespace: 'shop', name: 'db-0' },
  findings: [],
  unknown: [],
  unexplained: [],
  read: { requests: 1, objects: 1, bytes: 1, milliseconds: 1 },
};

export const pod = (uid: string): Write =>
  deleteObject({ resource: 'pods', namespace: 'shop', name: `pod-${uid}`, uid });
export const newClaim = (name: string): Write =>
  createObject({ resource: 'persistentvolumeclaims', namespace: 'shop', name }, { spec: {} });

export function newPlan(
  id: string,
  options: {
    readonly writes?: readonly Write[];
    readonly risk?: Risk;
    readonly requester?: string | null;
    readonly clusterUid?: string;
  } = {},
): NewPlan {
  const {
    writes = [pod('u1'), pod('u2')],
    risk = 'high',
    requester = 'U-REQUESTER',
    clusterUid = CLUSTER_UID,
  } = options;
  const params = { pods: writes.map(({ name }) => name) };
  const plan = writes.map(toPlanned);
  const remediation = 'delete-pod';
  return {
    id,
    finding: 'f1',
    fault: 'claim-held-by-pod',
    title: { en: 'Delete pods', zh: '删除 Pod' },
    clusterUid,
    requester,
    offer: {
      remediation,
      risk,
      params,
      dataLoss: 'none',
      requires: ['downtime-accepted'],
      blocked: null,
      plan,
      digest: digestOf({ cluster: clusterUid, remediation, params, plan }),
      undo: { en: 'the controller makes it again', zh: '控制器会重新创建它' },
    },
  };
}

let requests = 0;
/** A request of its own, taken in. */
export async function request(store: Store): Promise<string> {
  requests += 1;
  const { id } = await store.takeIn(`inb-${requests}`, {
    source: 'slack',
    key: `key-${requests}`,
    body: { kind: 'pause', user: 'U1', channel: 'C1', cluster: null },
  });
  return id;
}

export async function openIncident(
  store: Store,
  id: string,
  options: { readonly scope?: ScopeRef; readonly requester?: string | null; readonly cluster?: string } = {},
) {
  const {
    scope = { kind: 'Pod', namespace: 'shop', name: id },
    requester = 'U-REQUESTER',
    cluster = CLUSTER,
  } = options;
  return store.openIncident({
    inboxId: await request(store),
    id,
    cluster,
    scope,
    requester,
    channel: 'C1',
    language: null,
  });
}

export async function diagnose(
  store: Store,
  incident: string,
  plans: readonly NewPlan[],
  approvalTtlMs = MINUTES_15,
): Promise<void> {
  await store.recordDiagnosis({
    incident,
    report,
    plans,
    state: 'diagnosed',
    recheckSeconds: undefined,
    approvalTtlMs,
  });
}

/** An incident `inc-<name>` with one plan `pln-<name>`. */
export async function planned(
  store: Store,
  name: string,
  options: Parameters<typeof newPlan>[1] & { readonly approvalTtlMs?: number } = {},
): Promise<Plan> {
  await openIncident(store, `inc-${name}`);
  await diagnose(store, `inc-${name}`, [newPlan(`pln-${name}`, options)], options.approvalTtlMs);
  return getPlan(store, `pln-${name}`);
}

export async function getPlan(store: Store, id: string): Promise<Plan> {
  const plan = await store.findPlan(id);
  if (!plan) throw new Error(`no plan ${id}`);
  return plan;
}

export async function vote(
  store: Store,
  plan: string,
  user: string,
  options: {
    readonly decision?: 'approve' | 'reject';
    readonly digest?: string;
    readonly inboxId?: string;
    readonly executionTtlMs?: number;
  } = {},
) {
  const { decision = 'approve', executionTtlMs = MINUTES_15 } = options;
  return store.castVote({
    inboxId: options.inboxId ?? (await request(store)),
    plan,
    vote: {
      user,
      decision,
      digest: options.digest ?? (await getPlan(store, plan)).digest,
      proofs: { 'downtime-accepted': 'the owner said yes' },
      reason: 'because',
    },
    executionTtlMs,
  });
}

export async function approved(
  store: Store,
  name: string,
  options: Parameters<typeof planned>[2] & { readonly executionTtlMs?: number } = {},
): Promise<Plan> {
  await planned(store, name, options);
  await vote(store, `pln-${name}`, 'U-A', options);
  await vote(store, `pln-${name}`, 'U-B', options);
  return getPlan(store, `pln-${name}`);
}

/** An approved plan, claimed by `owner`. */
export async function claimed(
  store: Store,
  name: string,
  options: Parameters<typeof approved>[2] & { readonly owner?: string; readonly leaseMs?: number } = {},
): Promise<Fence> {
  await approved(store, name, options);
  return claim(store, `pln-${name}`, options.owner ?? 'owner-1', options.leaseMs);
}

export async function claim(store: Store, plan: string, owner: string, leaseMs = LEASE): Promise<Fence> {
  const got = await store.claim(plan, owner, leaseMs);
  if (!got) throw new Error(`no claim of ${plan}`);
  return { plan, epoch: got.epoch, owner };
}

export async function doStep(store: Store, fence: Fence, step: number): Promise<void> {
  await store.intent(fence, step, {
    auditId: `audit-${fence.plan}-${step}`,
    before: { metadata: { name: 'x' } },
    leaseMs: LEASE,
  });
  await store.outcome(fence, step, { state: 'DONE', result: verbatim('applied'), after: null, leaseMs: LEASE });
}

export async function finishAll(store: Store, fence: Fence): Promise<void> {
  for (const { no } of (await getPlan(store, fence.plan)).steps) await doStep(store, fence, no);
  await store.beginVerifying(fence, LEASE);
  await store.finish(fence, 'SUCCEEDED', verbatim('Done.'));
}
