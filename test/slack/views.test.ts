import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planStates } from '../../src/domain/plan.ts';
import { type SpokenFinding, type SpokenIncident, type SpokenPlan, storedReport } from '../../src/domain/spoken.ts';
import { en, type Locale } from '../../src/locales/en.ts';
import { zh } from '../../src/locales/zh.ts';
import { checkMessage, checkView } from '../../src/slack/limits.ts';
import {
  auditAnswer,
  commandsAnswer,
  evidenceAnswer,
  incidentAnswer,
  incidentsAnswer,
  sentenceAnswer,
  statusAnswer,
} from '../../src/slack/views/answers.ts';
import { findingGone, findingKey, findingMessage, findingMessages } from '../../src/slack/views/findings.ts';
import { homeView } from '../../src/slack/views/home.ts';
import { incidentMessage } from '../../src/slack/views/incident.ts';
import { kubectlLine } from '../../src/slack/views/kubectl.ts';
import { decisionModal, noticeModal } from '../../src/slack/views/modal.ts';
import { planMessage } from '../../src/slack/views/plan.ts';
import type { HomeNow } from '../../src/surface.ts';
import { storedIncident, storedPlan } from '../support/stored.ts';
import { hostileTexts } from './support/hostile.ts';
import { isOurs, look, unseenOf } from './support/parse.ts';
import { findingOf, formOf, incidentOf, node, offerOf, planOf, pod, reportOf, taint } from './support/samples.ts';

const [first, second] = [(text: string) => text.split('\n')[0] ?? '', (text: string) => text.split('\n')[1] ?? ''];

describe('the list of recent incidents', () => {
  const now = Date.parse('2026-11-30T12:12:00Z');
  const open = incidentOf({ thread: '1700000000.000100' });
  const seen = open.report;

  it('says severity, cause, who suffers, for how long, and where', () => {
    const { text, blocks } = incidentsAnswer(
      { incidents: [{ incident: open, seen }], open: 1, ended: 0 },
      'https://acme.slack.com/',
      now,
      en,
    );
    expect(text).toBe('1 incident is open; none ended within the last week.');
    expect(JSON.stringify(blocks)).toContain(
      '• Critical: Node n3 has been down for 12 min and still holds 1 volume that db-1 waits for. :red_circle: Suffering: Pod shop/db-1. Open for 12 min (<https://acme.slack.com/archives/C1/p1700000000000100|thread>, inc-1, PersistentVolumeClaim shop/data-db-1 in prod-eu).',
    );
  });

  it('says of one that is over what it was, and how long it lasted', () => {
    const over = {
      ...open,
      state: 'resolved' as const,
      resolvedAt: '2026-11-30T12:43:00Z',
      report: reportOf({ findings: [] }),
    };
    const { blocks } = incidentsAnswer(
      { incidents: [{ incident: over, seen }], open: 0, ended: 1 },
      'https://acme.slack.com/',
      now,
      zh,
    );
    expect(JSON.stringify(blocks)).toMatch(/Node n3 has been down.*历时 43 分钟/);
  });

  it('counts hundreds, shows some, and says where the others are', () => {
    const incidents = Array.from({ length: 30 }, () => ({ incident: open, seen }));
    const answer = incidentsAnswer({ incidents, open: 400, ended: 100 }, 'https://acme.slack.com/', now, en);
    expect(checkMessage(answer)).toEqual([]);
    expect(JSON.stringify(answer.blocks)).toMatch(/and 4\d\d more, which `k8s-storage incidents` lists/);
    expect(answer.text).toContain('400 incidents are open; 100 ended');
  });
});

describe('the Home tab', () => {
  it('shows nothing of any incident to who may see none', () => {
    const view = homeView(['prod'], { kind: 'hidden' }, en);
    expect(JSON.stringify(view)).toContain('Only members of this workspace');
    expect(checkView(view)).toEqual([]);
  });

  it('says that it could not be filled rather than that all is well', () => {
    expect(JSON.stringify(homeView(['prod'], { kind: 'unread' }, en))).toMatch(/could not be read just now/);
  });
});

describe('the first message of a thread', () => {
  it('says what is wrong, then what to do', () => {
    const { text, metadata } = incidentMessage(incidentOf(), [planOf()], en);
    expect(first(text)).toBe(
      'Critical: Node n3 has been down for 12 min and still holds 1 volume that db-1 waits for. :red_circle:',
    );
    expect(second(text)).toBe(
      'To do: approve or reject “Taint n3 out of service” in this thread (high risk, needs 2 people, none of them the one who asked).',
    );
    expect(metadata).toEqual({
      event_type: 'k8s_storage',
      event_payload: { kind: 'incident', incident: 'inc-1', fault: 'multi-attach-node-down', state: 'diagnosed' },
    });
  });

  it('has no buttons: they stand with the findings', () => {
    expect(look(incidentMessage(incidentOf(), [planOf()], en)).buttons).toEqual([]);
  });

  it('offers to look back once trouble is over, and at no other time', () => {
    const over = incidentOf({ state: 'resolved', severity: 'critical', report: reportOf({ findings: [] }) });
    for (const t of [en, zh]) {
      const message = incidentMessage(over, [planOf({ state: 'SUCCEEDED' })], t);
      expect(checkMessage(message)).toEqual([]);
      expect(JSON.stringify(message.blocks)).toContain('"action_id":"postmortem"');
      expect(JSON.stringify(message.blocks)).toContain('"value":"inc-1"');
    }
    for (const state of ['open', 'diagnosed', 'acting', 'joined'] as const)
      expect(look(incidentMessage({ ...over, state }, [], en)).buttons).toEqual([]);
    expect(look(incidentMessage({ ...over, severity: null }, [], en)).buttons).toEqual([]);
  });

  const states: readonly (readonly [string, Partial<SpokenIncident>, readonly SpokenPlan[], RegExp, RegExp])[] = [
    [
      'a diagnosis that runs',
      { state: 'open', report: null },
      [],
      /^Diagnosing PersistentVolumeClaim shop\/data-db-1/,
      /Nothing to do yet/,
    ],
    [
      'a cluster that cannot be reached',
      { state: 'open', report: null, problem: 'no answer from prod-eu within 5 s' },
      [],
      /^Could not diagnose .*no answer from prod-eu/,
      /recheck/,
    ],
    [
      'nothing wrong',
      { state: 'resolved', report: reportOf({ findings: [] }) },
      [],
      /^Nothing is wrong with/,
      /^To do: nothing/,
    ],
    [
      'a trouble that is over',
      { state: 'resolved', report: reportOf({ findings: [] }), diagnoses: 3, resolvedAt: '2026-11-30T12:30:00Z' },
      [planOf({ state: 'SUCCEEDED' })],
      /^Resolved/,
      /nothing/,
    ],
    [
      'Kubernetes at work',
      {
        report: reportOf({ findings: [findingOf({ verdict: 'progress', offers: [], recheckAfterSeconds: 240 })] }),
        recheckAt: '2026-11-30T12:04:00Z',
      },
      [],
      /^In progress/,
      /wait, .* I look again <!date/,
    ],
    [
      'something unread',
      { report: reportOf({ findings: [], unknown: [{ fault: 'attachment-stale', reason: 'forbidden' }] }) },
      [],
      /^Not certain: .* 1 check could not be made/,
      /let the bot read/,
    ],
    [
      'something unexplained',
      { report: reportOf({ findings: [], unexplained: [{ object: pod, says: 'waiting for 10 h' }] }) },
      [],
      /^Unexplained: Pod shop\/db-1 is not well/,
      /a person must look/,
    ],
    [
      'a repair under way',
      {},
      [planOf({ state: 'EXECUTING' })],
      /^Critical/,
      /wait\. “Taint n3 out of service” is being carried out/,
    ],
    [
      'a repair that needs a person',
      {},
      [planOf({ state: 'NEEDS_ATTENTION' })],
      /^Critical/,
      /a person must look at “Taint n3 out of service”/,
    ],
    [
      'nothing on offer',
      { report: reportOf({ findings: [findingOf({ offers: [] })] }) },
      [],
      /^Critical/,
      /Bring the node back/,
    ],
  ];
  it.each(states)('tells %s', (_name, over, plans, what, todo) => {
    const message = incidentMessage(incidentOf(over), plans, en);
    expect(first(message.text)).toMatch(what);
    expect(second(message.text)).toMatch(todo);
    expect(checkMessage(message)).toEqual([]);
  });

  it('never says clear while something is unknown or unexplained', () => {
    for (const over of [
      { unknown: [{ fault: 'x', reason: 'forbidden' }] },
      { unexplained: [{ object: pod, says: 'waits' }] },
    ]) {
      expect(incidentMessage(incidentOf({ report: reportOf({ findings: [], ...over }) }), [], en).text).not.toMatch(
        /Nothing is wrong|well again/,
      );
    }
  });
});

describe('a finding', () => {
  it('has the buttons of the contract: an offer in one block, the rest with the incident', () => {
    const { buttons } = look(findingMessage(incidentOf(), findingOf(), [planOf()], en));
    expect(buttons.map(({ id, blockId, value }) => ({ id, blockId, value }))).toEqual([
      { id: 'approve', blockId: 'plan/taint-node-out-of-service/pln-1', value: 'pln-1' },
      { id: 'reject', blockId: 'plan/taint-node-out-of-service/pln-1', value: 'pln-1' },
      { id: 'recheck', blockId: 'incident/inc-1', value: 'inc-1' },
      { id: 'evidence', blockId: 'incident/inc-1', value: 'inc-1' },
      { id: 'commands', blockId: 'incident/inc-1', value: 'inc-1' },
    ]);
  });

  it('carries the ids of the contract in its metadata', () => {
    expect(findingMessage(incidentOf(), findingOf(), [planOf()], en).metadata.event_payload).toEqual({
      kind: 'finding',
      incident: 'inc-1',
      finding: 'f1',
      fault: 'multi-attach-node-down',
      plan: 'pln-1',
      remediation: 'taint-node-out-of-service',
      digest: planOf().digest,
      state: 'found',
    });
  });

  it.each(planStates.filter((state) => state !== 'AWAITING_APPROVAL'))(
    'has no approve button while its plan is %s',
    (state) => {
      const { buttons } = look(findingMessage(incidentOf(), findingOf(), [planOf({ state })], en));
      expect(buttons.map(({ id }) => id)).toEqual(['recheck', 'evidence', 'commands']);
    },
  );

  it('has none for an offer that cannot be done now, and says why', () => {
    const blocked = findingOf({ offers: [offerOf({ blocked: 'n3 shows a sign of life', digest: null })] });
    const seen = look(findingMessage(incidentOf({ report: reportOf({ findings: [blocked] }) }), blocked, [], en));
    expect(seen.buttons.map(({ id }) => id)).not.toContain('approve');
    expect(seen.strings.join('\n')).toMatch(
      /Cannot be done now: taint node out of service n3\*\nn3 shows a sign of life/,
    );
  });

  it('shows the plan that still waits, not an older one of the same digest', () => {
    const plans = [
      planOf({ id: 'pln-0', state: 'EXPIRED' }),
      planOf({ id: 'pln-1' }),
      planOf({ id: 'pln-2', digest: 'sha256:other' }),
    ];
    expect(look(findingMessage(incidentOf(), findingOf(), plans, en)).buttons[0]?.value).toBe('pln-1');
  });

  it('tells risk, data loss, who must approve, what is asked and how it is undone', () => {
    const said = look(findingMessage(incidentOf(), findingOf(), [planOf({ votes: [vote('U0ADA')] })], en)).strings.join(
      '\n',
    );
    expect(said).toMatch(/High risk, \*data may be lost\*, needs 2 people/);
    expect(said).toMatch(/How do you know that the machine is off or fenced/);
    expect(said).toMatch(/To undo it: remove-out-of-service-taint/);
    expect(said).toMatch(/1 of 2 approvals: <@U0ADA>/);
  });

  it('names its effects; an effect without offers has no message of its own', () => {
    const effect = findingOf({
      id: 'f2',
      fault: 'statefulset-halted',
      causedBy: 'f1',
      offers: [],
      summary: 'StatefulSet db is halted.',
    });
    const messages = findingMessages(
      incidentOf({ report: reportOf({ findings: [findingOf(), effect] }) }),
      [planOf()],
      en,
    );
    expect(messages.map(({ finding }) => finding.id)).toEqual(['f1']);
    expect(look(messages[0]?.message).strings.join('\n')).toMatch(/What follows from it\*\n• StatefulSet db is halted/);
  });

  it('keeps its key over re-checks, whatever number it got', () => {
    expect(findingKey(findingOf({ id: 'f7' }))).toBe(findingKey(findingOf()));
    expect(findingKey(findingOf({ subject: pod }))).not.toBe(findingKey(findingOf()));
  });
});

describe('a plan', () => {
  const kinds: readonly (readonly [SpokenPlan['state'], string])[] = [
    ['AWAITING_APPROVAL', 'plan'],
    ['EXECUTING', 'progress'],
    ['HALTED', 'progress'],
    ['NEEDS_ATTENTION', 'progress'],
    ['SUCCEEDED', 'result'],
    ['REJECTED', 'result'],
  ];
  it.each(kinds)('that is %s is a message of kind %s', (state, kind) => {
    expect(planMessage(planOf({ state }), en).metadata.event_payload).toMatchObject({
      kind,
      plan: 'pln-1',
      state,
      remediation: 'taint-node-out-of-service',
    });
  });

  it.each(planStates)('says in %s what that asks of people', (state) => {
    const message = planMessage(planOf({ state, stateReason: 'because' }), en);
    expect(second(message.text)).not.toBe('');
    expect(checkMessage(message)).toEqual([]);
  });

  it('lists every step with what became of it', () => {
    const steps = [
      { no: 1, write: taint, state: 'DONE' as const, epoch: 1, attempt: 1, at: '2026-11-30T12:01:00Z', result: null },
      {
        no: 2,
        write: { ...taint, name: 'n4' },
        state: 'UNKNOWN' as const,
        epoch: 1,
        attempt: 1,
        at: null,
        result: 'time-out',
      },
    ];
    const said = look(planMessage(planOf({ state: 'EXECUTING', steps }), en)).strings.join('\n');
    expect(said).toMatch(/1\. `patch nodes n3` done <!date/);
    expect(said).toMatch(/2\. `patch nodes n4` outcome not certain: time-out/);
  });
});

describe('the form of a vote', () => {
  const data = planOf({
    remediation: 'delete-pod',
    requires: ['node-off-proof', 'data-disposable'],
    params: { dataName: 'data-db-1' },
    dataLoss: 'certain',
  });

  it('has the ids of the contract, letter for letter', () => {
    const view = decisionModal('approve', data, formOf(data), en);
    expect(view.callback_id).toBe('approve');
    expect(view.private_metadata).toBe('{"plan":"pln-1"}');
    const inputs = view.blocks.flatMap((block) => (block.type === 'input' && 'element' in block ? [block] : []));
    expect(inputs.map((block) => block.block_id)).toEqual([
      'proof/node-off-proof',
      'proof/data-disposable',
      'reason',
      'typed-name',
    ]);
    expect(inputs.every((block) => block.element.action_id === 'value')).toBe(true);
    expect(checkView(view)).toEqual([]);
    expect(decisionModal('reject', data, formOf(data), en).callback_id).toBe('reject');
  });

  it('shows the target and every write with its uid and body, from the plan', () => {
    const said = look(decisionModal('approve', planOf(), formOf(planOf()), en)).strings.join('\n');
    expect(said).toMatch(
      /1\. `patch nodes n3`, uid `uid-n3`\n`\[\{"op":"test","path":"\/metadata\/uid","value":"uid-n3"\}/,
    );
  });

  it('says how many writes it cannot show', () => {
    const writes = Array.from({ length: 300 }, (_, no) => ({ ...taint, name: `n${no}-${'x'.repeat(400)}` }));
    const plan = planOf({ writes });
    const view = decisionModal('approve', plan, formOf(plan), en);
    expect(checkView(view)).toEqual([]);
    expect(look(view).strings.join('\n')).toMatch(/and \d+ more, which `k8s-storage plan pln-1` lists/);
  });
});

describe('answers to one person', () => {
  it('tells how things stand, pauses first', () => {
    const { text, blocks } = statusAnswer(
      {
        incidents: [incidentOf()],
        plans: [planOf()],
        pauses: [{ cluster: 'prod-eu', actor: 'U0ADA', at: '2026-11-30T12:00:00Z' }],
      },
      en,
    );
    expect(text).toBe('1 open incident, 1 repair under way or waiting.');
    expect(look(blocks).strings.join('\n')).toMatch(/cluster prod-eu are paused by <@U0ADA> since/);
  });

  it('shows the audit trail with actor, time and what it was about', () => {
    const body = JSON.stringify({
      seq: 1,
      kind: 'vote_refused',
      at: '2026-11-30T12:00:00Z',
      actor: 'U0ADA',
      plan: 'pln-1',
      data: { says: '<!here>' },
    });
    const said = look(
      auditAnswer(
        'inc-1',
        [
          { seq: 1, prev: '', hash: '', body },
          { seq: 2, prev: '', hash: '', body: 'no json <!here>' },
        ],
        en,
      ).blocks,
    );
    expect(said.strings.join('\n')).toMatch(/1\. <!date\^.*> vote refused by <@U0ADA>, pln-1/);
    expect(said.tokens.filter((token) => !isOurs(token, ['U0ADA']))).toEqual([]);
  });

  it('shows all evidence, and what was not read', () => {
    const said = look(
      evidenceAnswer(
        incidentOf({
          report: reportOf({ findings: [findingOf({ unread: [{ resource: 'leases', reason: 'forbidden' }] })] }),
        }),
        en,
      ).blocks,
    );
    expect(said.strings.join('\n')).toMatch(
      /Node n3, `status.conditions\[Ready\]` is `Unknown`: kubelet is silent\n• not read: leases \(forbidden\)/,
    );
  });

  it('gives the manual steps, and no lines of an offer that needs a proof', () => {
    const said = look(commandsAnswer(incidentOf(), en).blocks).strings.join('\n');
    expect(said).toMatch(/Bring the node back\.\n```\nkubectl get node n3\n```/);
    expect(said).not.toMatch(/kubectl patch nodes/);
  });
});

describe('a line for kubectl', () => {
  const pods = { resource: 'pods', namespace: 'shop', name: 'db-1', uid: 'u' };
  it('deletes with the same preconditions as the plan', () => {
    const write = {
      ...pods,
      verb: 'delete',
      body: { preconditions: { uid: 'u' }, propagationPolicy: 'Background', gracePeriodSeconds: 0 },
    };
    expect(kubectlLine(write, 'prod', en)).toBe(
      `echo '{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background","gracePeriodSeconds":0}' | kubectl delete --context prod --raw /api/v1/namespaces/shop/pods/db-1 -f -`,
    );
  });

  it('names group and subresource', () => {
    const scale = { verb: 'patch', resource: 'deployments/scale', namespace: 'shop', name: 'web', uid: 'u', body: [] };
    expect(kubectlLine(scale, 'prod', en)).toBe(
      "kubectl patch deployments.apps web -n shop --context prod --subresource=scale --type=json -p '[]'",
    );
    const attachment = {
      verb: 'delete',
      resource: 'volumeattachments',
      namespace: null,
      name: 'csi-1',
      uid: 'u',
      body: {},
    };
    expect(kubectlLine(attachment, 'prod', en)).toMatch(
      /--raw \/apis\/storage.k8s.io\/v1\/volumeattachments\/csi-1 -f -$/,
    );
  });

  it('is none for the storage backend, which no kubectl reaches', () => {
    const snapshot = {
      verb: 'patch',
      resource: 'backendvolumes',
      namespace: null,
      name: 'vol-1',
      uid: 'vol-1',
      body: [],
    };
    expect(kubectlLine(snapshot, 'prod', en)).toBe('# in the storage backend: patch vol-1 []');
  });

  it('keeps a hostile name within its quotes', () => {
    const line = kubectlLine({ ...pods, verb: 'patch', name: "x'; rm -rf / #", body: [] }, 'a b', en);
    expect(line).toBe(`kubectl patch pods 'x'\\''; rm -rf / #' -n shop --context 'a b' --type=json -p '[]'`);
  });
});

function vote(user: string): SpokenPlan['votes'][number] {
  return { user, decision: 'approve', digest: planOf().digest, proofs: {}, reason: null, at: '2026-11-30T12:01:00Z' };
}

/** Everything that can be shown, of one incident whose every text from outside is `text`. */
function everythingOf(
  text: string,
  findings: number,
  offers: number,
  state: SpokenPlan['state'],
  t: Locale,
  many = 60,
): readonly { readonly message?: unknown; readonly view?: unknown }[] {
  const ref = { ...pod, namespace: text, name: text };
  const write = { ...taint, name: text, namespace: text, body: [{ op: 'add', path: text, value: text }] };
  const offer = (no: number) =>
    offerOf({ digest: `sha256:${no}`, plan: [write], undo: text, blocked: no % 5 === 4 ? text : null });
  const finding = (no: number): SpokenFinding =>
    findingOf({
      id: `f${no}`,
      causedBy: no % 3 === 2 ? 'f0' : null,
      subject: { ...node, name: `${text}${no}` },
      affected: Array.from({ length: Math.ceil(many / 2) }, () => ref),
      summary: text,
      explanation: text,
      evidence: Array.from({ length: Math.ceil(many / 2) }, () => ({
        object: ref,
        path: text,
        value: text,
        says: text,
      })),
      unread: [{ resource: 'leases', reason: text }],
      manual: Array.from({ length: Math.ceil(many / 2) }, () => ({ says: text, command: text })),
      offers: Array.from({ length: offers }, (_, offerNo) => offer(offerNo)),
    });
  const report = reportOf({
    findings: Array.from({ length: findings }, (_, no) => finding(no)),
    unknown: Array.from({ length: Math.ceil(many / 2) }, () => ({ fault: 'attachment-stale', reason: text })),
    unexplained: Array.from({ length: Math.ceil(many / 2) }, () => ({ object: ref, says: text })),
  });
  const incident = incidentOf({
    cluster: text,
    scope: { kind: 'Pod', namespace: text, name: text },
    requester: text,
    report,
  });
  const steps = Array.from({ length: many }, (_, no) => ({
    no,
    write,
    state: 'DONE' as const,
    epoch: 1,
    attempt: 1,
    at: '2026-11-30T12:01:00Z',
    result: text,
  }));
  const plans = Array.from({ length: offers }, (_, no) =>
    planOf({
      id: `pln-${no}`,
      digest: `sha256:${no}`,
      title: text,
      undo: text,
      cluster: text,
      writes: Array.from({ length: many }, () => write),
      steps,
      state,
      stateReason: text,
      votes: [vote('U0ADA'), vote(text)],
    }),
  );
  const plan = plans[0] ?? planOf();
  const rows = Array.from({ length: many }, (_, seq) => ({
    seq,
    prev: '',
    hash: '',
    body: JSON.stringify({ seq, kind: 'vote', actor: text, at: text, data: { text } }),
  }));
  const recent = Array.from({ length: Math.min(many, 40) }, (_, no) => ({
    incident: no % 3 === 0 ? { ...incident, state: 'resolved' as const, resolvedAt: '2026-11-30T12:30:00Z' } : incident,
    seen: report,
  }));
  const inThread = plans.map((one) => ({ plan: storedPlan(one), channel: 'C1', thread: '1.1' }));
  const homeNow: HomeNow = {
    kind: 'shown',
    at: '2026-11-30T12:00:00Z',
    url: URL_OF_WORKSPACE,
    recent: {
      incidents: recent.slice(0, 20).map((one) => ({
        incident: storedIncident(one.incident),
        seen: storedReport(one.seen),
      })),
      open: many,
      ended: 3,
    },
    waiting: inThread,
    running: inThread,
    pauses: Array.from({ length: 9 }, () => ({ cluster: text, actor: text, at: text })),
  };
  const messages = [
    incidentMessage(incident, plans, t),
    incidentMessage({ ...incident, problem: text }, plans, t),
    incidentMessage({ ...incident, state: 'resolved' }, [], t),
    incidentMessage({ ...incident, report: { ...report, findings: [] } }, [], t),
    findingGone(incident, text, t),
    ...findingMessages(incident, plans, t).map(({ message }) => message),
    planMessage(plan, t),
    statusAnswer(
      {
        incidents: Array.from({ length: many }, () => incident),
        plans,
        pauses: Array.from({ length: 9 }, () => ({ cluster: text, actor: text, at: text })),
      },
      t,
    ),
    incidentAnswer(incident, plans, t),
    incidentsAnswer({ incidents: recent, open: many, ended: 1 }, URL_OF_WORKSPACE, 0, t),
    auditAnswer(text, rows, t),
    evidenceAnswer(incident, t),
    commandsAnswer(incident, t),
    sentenceAnswer(text, t),
  ];
  const form = { ...formOf(plan), typedName: text };
  const views = [
    decisionModal('approve', plan, form, t),
    decisionModal('reject', plan, form, t),
    noticeModal('words', t),
    homeView([text, text], homeNow, t),
  ];
  return [...messages.map((message) => ({ message })), ...views.map((view) => ({ view }))];
}

const URL_OF_WORKSPACE = 'https://acme.slack.com/';

describe('whatever the input', () => {
  const state = fc.constantFrom<SpokenPlan['state']>('AWAITING_APPROVAL', 'EXECUTING', 'NEEDS_ATTENTION', 'SUPERSEDED');
  const long = fc.oneof(
    fc.string({ maxLength: 300 }),
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc
      .tuple(fc.constantFrom('a', '<', '&', '𝒳', '`', 'x ', 'x\n'), fc.integer({ min: 100, max: 5000 }))
      .map(([unit, times]) => unit.repeat(times).slice(0, 5000)),
  );

  it('every view stays within the limits of Slack', () => {
    fc.assert(
      fc.property(
        long,
        fc.integer({ min: 0, max: 300 }),
        fc.integer({ min: 0, max: 50 }),
        state,
        fc.constantFrom(en, zh),
        (text, findings, offers, planState, t) => {
          for (const { message, view } of everythingOf(
            text,
            findings,
            Math.min(offers, findings > 30 ? 3 : 50),
            planState,
            t,
          )) {
            if (view !== undefined) expect(checkView(view)).toEqual([]);
            else expect(checkMessage(message as { text: string; blocks: unknown })).toEqual([]);
          }
        },
      ),
      { numRuns: 12 },
    );
  });

  it('no view brings forth a mention, a link, a button or an unseen character from a hostile text', () => {
    for (const text of hostileTexts()) {
      for (const shown of everythingOf(text, 2, 1, 'AWAITING_APPROVAL', zh, 1)) {
        const seen = look(shown.message ?? shown.view);
        const others = seen.tokens.filter((token) => !isOurs(token, ['U0ADA']));
        // Links to threads: the workspace's own address, and ids of Slack.
        expect(others.filter((token) => !/^https:\/\/acme\.slack\.com\/archives\/C1\/p\d+\|/.test(token))).toEqual([]);
        expect(seen.urls).toEqual([]);
        expect(seen.strings.flatMap(unseenOf)).toEqual([]);
        expect(
          seen.buttons.every(
            ({ id, value }) =>
              ['approve', 'reject', 'recheck', 'evidence', 'commands'].includes(id) && /^(pln|inc)-\d+$/.test(value),
          ),
        ).toBe(true);
      }
    }
  });

  it('says what it leaves out: 300 findings, 50 offers', () => {
    const shown = everythingOf('x', 300, 50, 'AWAITING_APPROVAL', en).map(({ message, view }) =>
      look(message ?? view).strings.join('\n'),
    );
    expect(shown[0]).toMatch(/and \d+ more/);
    const findings = shown.filter((one) => /Who suffers/.test(one) && /Repair:/.test(one));
    expect(findings).toHaveLength(20);
    expect(findings.every((one) => /and 38 more offers/.test(one))).toBe(true);
    expect(findings.at(-1)).toMatch(/and 280 more findings/);
  });
});
