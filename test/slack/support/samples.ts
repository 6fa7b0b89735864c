import { type ApprovalForm, approvalFormOf } from '../../../src/domain/plan.ts';
import type { Ref } from '../../../src/domain/ref.ts';
import { digestOf } from '../../../src/domain/report.ts';
import type {
  SpokenFinding,
  SpokenIncident,
  SpokenOffer,
  SpokenPlan,
  SpokenReport,
} from '../../../src/domain/spoken.ts';
import type { PlannedWrite } from '../../../src/domain/write.ts';
import type { Log } from '../../../src/ports.ts';

/** One incident of a dead node, small enough to read. */
export const node: Ref = { apiVersion: 'v1', kind: 'Node', namespace: null, name: 'n3', uid: 'uid-n3' };
export const pod: Ref = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'db-1', uid: 'uid-db-1' };

export const taint: PlannedWrite = {
  verb: 'patch',
  resource: 'nodes',
  namespace: null,
  name: 'n3',
  uid: 'uid-n3',
  body: [
    { op: 'test', path: '/metadata/uid', value: 'uid-n3' },
    { op: 'add', path: '/spec/taints/-', value: { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' } },
  ],
};

const params = { node: 'n3', uid: 'uid-n3' };
const digest = digestOf({ cluster: 'c-uid', remediation: 'taint-node-out-of-service', params, plan: [taint] });

export function offerOf(over: Partial<SpokenOffer> = {}): SpokenOffer {
  return {
    remediation: 'taint-node-out-of-service',
    risk: 'high',
    params,
    dataLoss: 'possible',
    requires: ['node-off-proof'],
    blocked: null,
    plan: [taint],
    digest,
    undo: 'remove-out-of-service-taint',
    ...over,
  };
}

export function findingOf(over: Partial<SpokenFinding> = {}): SpokenFinding {
  return {
    id: 'f1',
    fault: 'multi-attach-node-down',
    reason: null,
    verdict: 'found',
    severity: 'critical',
    causedBy: null,
    subject: node,
    involved: [pod],
    affected: [pod],
    summary: 'Node n3 has been down for 12 min and still holds 1 volume that db-1 waits for.',
    explanation: 'The old pod object keeps the volume wanted there.',
    evidence: [{ object: node, path: 'status.conditions[Ready]', value: 'Unknown', says: 'kubelet is silent' }],
    unread: [],
    offers: [offerOf()],
    manual: [{ says: 'Bring the node back.', command: 'kubectl get node n3' }],
    ...over,
  };
}

export function reportOf(over: Partial<SpokenReport> = {}): SpokenReport {
  return {
    version: 1,
    cluster: { name: 'prod-eu', uid: 'c-uid' },
    now: '2026-11-30T12:00:00Z',
    scope: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data-db-1' },
    findings: [findingOf()],
    unknown: [],
    unexplained: [],
    read: { requests: 9, objects: 231, bytes: 812_345, milliseconds: 140 },
    ...over,
  };
}

export function incidentOf(over: Partial<SpokenIncident> = {}): SpokenIncident {
  return {
    id: 'inc-1',
    cluster: 'prod-eu',
    clusterUid: 'c-uid',
    scope: { kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data-db-1' },
    origin: 'person',
    requester: 'U0REQ',
    channel: 'C1',
    language: null,
    thread: '1700000000.000100',
    state: 'diagnosed',
    openedAt: '2026-11-30T12:00:00Z',
    resolvedAt: null,
    recheckAt: null,
    report: reportOf(),
    chains: [],
    problem: null,
    diagnoses: 1,
    answered: 1,
    joinedInto: null,
    reopened: 0,
    severity: null,
    isSilent: false,
    ...over,
  };
}

export function planOf(over: Partial<SpokenPlan> = {}): SpokenPlan {
  return {
    id: 'pln-1',
    incident: 'inc-1',
    finding: 'f1',
    fault: 'multi-attach-node-down',
    cluster: 'prod-eu',
    clusterUid: 'c-uid',
    remediation: 'taint-node-out-of-service',
    params,
    title: 'Taint n3 out of service',
    writes: [taint],
    digest,
    risk: 'high',
    dataLoss: 'possible',
    requires: ['node-off-proof'],
    undo: 'remove-out-of-service-taint',
    requester: 'U0REQ',
    state: 'AWAITING_APPROVAL',
    stateReason: null,
    createdAt: '2026-11-30T12:00:00Z',
    approveBy: '2026-11-30T12:15:00Z',
    executeBy: null,
    epoch: 0,
    votes: [],
    steps: [{ no: 1, write: taint, state: 'PENDING', epoch: 0, attempt: 0, at: null, result: null }],
    successor: null,
    continues: null,
    ...over,
  };
}

export function formOf(plan: SpokenPlan): ApprovalForm {
  return approvalFormOf(plan);
}

/** Keeps what was logged, for tests that ask for it. */
export function recordingLog(): Log & {
  readonly lines: { readonly level: string; readonly message: string; readonly data: unknown }[];
} {
  const lines: { level: string; message: string; data: unknown }[] = [];
  const at = (level: string) => (message: string, data?: unknown) => void lines.push({ level, message, data });
  return { lines, debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}
