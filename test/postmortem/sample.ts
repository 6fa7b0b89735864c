import type { Incident } from '../../src/domain/incident.ts';
import type { Plan } from '../../src/domain/plan.ts';
import type { IncidentFacts, Move } from '../../src/domain/postmortem.ts';
import type { Ref } from '../../src/domain/ref.ts';
import type { Finding, Report } from '../../src/domain/report.ts';

/** A dead node in the night in which summer time ends in Berlin: 03:00 +02:00 is 02:00 +01:00. */
const at = (time: string) => `2026-10-25T${time}.000Z`;
const ref = (kind: string, namespace: string | null, name: string): Ref => ({
  apiVersion: 'v1',
  kind,
  namespace,
  name,
  uid: `uid-${name}`,
});
const n1 = ref('Node', null, 'n1');
const pods = ['db-0', 'db-1'].map((name) => ref('Pod', 'shop', name));

export const cause: Finding = {
  id: 'f1',
  fault: 'multi-attach-node-down',
  reason: null,
  verdict: 'found',
  severity: 'critical',
  causedBy: null,
  subject: n1,
  involved: [n1, ...pods],
  affected: pods,
  summary: {
    en: 'Node n1 has been down for 20 min and still holds 2 volumes that db-0 and db-1 wait for.',
    zh: '节点 n1 已停机 20 分钟，却仍占用 2 个卷：db-0 和 db-1 正在等待。',
  },
  explanation: {
    en: 'The old pod objects keep the volumes wanted there, so the timer of the forced detach never starts.',
    zh: '旧的 Pod 对象使卷仍被需要，因此强制解除挂接的计时器不会启动。',
  },
  evidence: [
    {
      object: n1,
      path: 'status.conditions[Ready]',
      value: 'Unknown',
      says: { en: 'kubelet has been silent since 00:00 UTC', zh: 'kubelet 自 00:00 UTC 起没有响应' },
    },
    {
      object: ref('VolumeAttachment', null, 'csi-1'),
      path: 'status.attached',
      value: 'true',
      says: { en: 'the volume of data-db-0 is attached to n1', zh: 'data-db-0 的卷挂接在 n1 上' },
    },
  ],
  unread: [{ resource: 'events', reason: { en: 'forbidden', zh: '被禁止' } }],
  offers: [],
  manual: [],
};

export const effect: Finding = {
  ...cause,
  id: 'f2',
  fault: 'statefulset-halted',
  severity: 'warning',
  causedBy: 'f1',
  subject: ref('StatefulSet', 'shop', 'db'),
  affected: [ref('StatefulSet', 'shop', 'db')],
  summary: { en: 'StatefulSet shop/db waits for db-0.', zh: 'StatefulSet shop/db 正在等待 db-0。' },
  evidence: [],
  unread: [],
};

export function reportOf(findings: readonly Finding[], now: string): Report {
  return {
    version: 1,
    cluster: { name: 'prod-eu', uid: 'c-uid' },
    now,
    scope: { kind: 'Pod', namespace: 'shop', name: 'db-0' },
    findings,
    unknown: [],
    unexplained: [],
    read: { requests: 9, objects: 231, bytes: 1, milliseconds: 1 },
  };
}

export const incident: Incident = {
  id: 'inc-7k2m',
  cluster: 'prod-eu',
  clusterUid: 'c-uid',
  scope: { kind: 'Pod', namespace: 'shop', name: 'db-0' },
  origin: 'alert',
  requester: null,
  channel: 'C1',
  language: null,
  thread: '1700000000.000100',
  state: 'resolved',
  openedAt: at('00:15:02'),
  resolvedAt: at('01:12:40'),
  recheckAt: null,
  report: reportOf([], at('01:12:38')),
  chains: [],
  problem: null,
  diagnoses: 3,
  answered: 3,
  joinedInto: null,
  reopened: 0,
  severity: 'critical',
  isSilent: false,
};

const step = { epoch: 1, attempt: 1, result: { en: 'applied', zh: '已应用' } } as const;

export const plan: Plan = {
  id: 'pln-taint',
  incident: incident.id,
  finding: 'f1',
  fault: 'multi-attach-node-down',
  cluster: 'prod-eu',
  clusterUid: 'c-uid',
  remediation: 'taint-node-out-of-service',
  params: { node: 'n1' },
  title: { en: 'Taint n1 out of service', zh: '将 n1 标记为停止服务' },
  writes: [],
  digest: `sha256:${'ab'.repeat(32)}`,
  risk: 'high',
  dataLoss: 'possible',
  requires: ['node-off-proof'],
  undo: { en: 'Remove the taint when the machine works again.', zh: '机器恢复后移除该污点。' },
  requester: null,
  state: 'SUCCEEDED',
  stateReason: { en: 'Done, and verified on the live cluster.', zh: '已完成，并已在集群上验证。' },
  createdAt: at('00:15:09'),
  approveBy: at('01:15:09'),
  executeBy: at('01:15:30'),
  epoch: 1,
  votes: [
    {
      user: 'U0SAM000001',
      decision: 'approve',
      digest: `sha256:${'ab'.repeat(32)}`,
      proofs: { 'node-off-proof': 'The cloud console says that i-n1 is terminated.' },
      reason: 'The shop is down.',
      at: at('00:41:00'),
    },
    {
      user: 'U0LIN000001',
      decision: 'approve',
      digest: `sha256:${'ab'.repeat(32)}`,
      proofs: { 'node-off-proof': 'I pulled its power cable myself.' },
      reason: 'Waiting costs more.',
      at: at('01:05:30'),
    },
  ],
  steps: [
    {
      ...step,
      no: 1,
      write: { verb: 'patch', resource: 'nodes', namespace: null, name: 'n1', uid: 'uid-n1', body: [] },
      state: 'DONE',
      at: at('01:05:34'),
    },
  ],
  successor: null,
  continues: null,
};

const unused: Plan = { ...plan, id: 'pln-force', state: 'SUPERSEDED', stateReason: null, votes: [], steps: [] };

const move = (kind: string, time: string, more: Partial<Move> = {}): Move => ({
  kind,
  at: at(time),
  actor: 'system',
  plan: null,
  data: {},
  ...more,
});

export const facts: IncidentFacts = {
  incident,
  alerts: [
    {
      source: 'alertmanager',
      name: 'KubePodNotReady',
      severity: 'warning',
      object: ['Pod', 'shop', 'db-0'],
      startsAt: at('00:15:00'),
      endsAt: at('01:14:00'),
      isFiring: false,
      times: 2,
    },
    {
      source: 'alertmanager',
      name: 'KubeNodeNotReady',
      severity: 'critical',
      object: ['Node', 'n1'],
      startsAt: at('00:10:00'),
      endsAt: null,
      isFiring: true,
      times: 1,
    },
  ],
  diagnoses: [
    { at: at('00:15:08'), lastAt: at('01:04:59'), report: reportOf([cause, effect], at('00:15:06')) },
    { at: at('01:12:40'), lastAt: at('01:12:40'), report: reportOf([], at('01:12:38')) },
  ],
  plans: [plan, unused],
  joined: [{ id: 'inc-9b3x', scope: { kind: 'Node', namespace: null, name: 'n1' }, at: at('00:15:20') }],
  moves: [
    move('incident_opened', '00:15:02', { data: { alert: 'KubePodNotReady' } }),
    move('vote_refused', '00:39:00', {
      actor: 'U0GUS000001',
      plan: plan.id,
      data: { says: 'Guests may not decide.' },
    }),
    move('plan_state', '01:05:30', { plan: plan.id, data: { from: 'AWAITING_APPROVAL', to: 'APPROVED' } }),
    move('plan_state', '01:05:33', { plan: plan.id, data: { from: 'APPROVED', to: 'EXECUTING' } }),
    move('plan_state', '01:06:10', { plan: plan.id, data: { from: 'VERIFYING', to: 'SUCCEEDED' } }),
    move('incident_joined', '01:08:00', { actor: 'U0SAM000001', data: { asks: 'recheck' } }),
    move('incident_resolved', '01:12:40'),
  ],
  isCut: false,
};
