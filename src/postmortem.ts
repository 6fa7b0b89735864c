import { quorumOf } from './domain/approval.ts';
import { causeKey, type Incident, isOver, isWorthAThread } from './domain/incident.ts';
import { code, prose } from './domain/markdown.ts';
import {
  describeState,
  describeStepState,
  isTerminal,
  type Plan,
  type PlanState,
  planStates,
  type Step,
} from './domain/plan.ts';
import type { AlertHistory, DiagnosisHistory, IncidentFacts, Move } from './domain/postmortem.ts';
import { describeRef, type Ref, refKey } from './domain/ref.ts';
import type { DataLoss, Risk } from './domain/remediation.ts';
import { type Finding, isTrouble, type Report } from './domain/report.ts';
import { scopeInWords } from './domain/scope.ts';
import { count, en, type Language, plural, sentences, type Text, textIn, verbatim, zh } from './domain/text.ts';
import { isTimeZone, localTime } from './domain/time-zone.ts';
import { describeWrite } from './domain/write.ts';

/** How a post-mortem is written. */
export interface PostmortemOptions {
  readonly language: Language;
  /** IANA name; what is none is UTC. */
  readonly timeZone: string;
  /** What would have prevented a fault, by its id; undefined for one that is not known. */
  prevention(fault: string): Text | undefined;
  /** The name of a person by their id, where it is known. */
  readonly names?: ReadonlyMap<string, string>;
}

const MOST = { causes: 20, evidence: 30, effects: 20, affected: 60, entries: 400, plans: 60 } as const;

/**
 * An incident as Markdown: what happened, who suffered and for how long, when each thing happened, why, what was changed by
 * whom, and what would have prevented it. Pure, and from the tables alone: the same facts give the same text, and what the
 * tables do not tell is said not to be known. All times are in one zone, with its offset from UTC, so that they also tell the
 * two hours of the end of summer time apart; durations are differences of moments and know no zone.
 */
export function postmortem(facts: IncidentFacts, options: PostmortemOptions): string {
  const w = writerOf(options);
  const seen = causesIn(facts);
  const parts = [
    ...heading(facts, seen, w),
    ...summary(facts, seen, w),
    ...impact(facts, w),
    ...timeline(facts, w),
    ...causes(facts, seen, w),
    ...changes(facts, w),
    ...prevention(facts, seen, options, w),
  ];
  return `${parts.filter((part) => part !== '').join('\n\n')}\n`;
}

/** The ids of the people of whom it tells. */
export function peopleOf(facts: IncidentFacts): readonly string[] {
  const { requester } = facts.incident;
  const all = [
    ...(requester === null ? [] : [requester]),
    ...facts.plans.flatMap((plan) => [
      ...(plan.requester === null ? [] : [plan.requester]),
      ...plan.votes.map(({ user }) => user),
    ]),
    ...facts.moves.map(({ actor }) => actor),
  ];
  return [...new Set(all)].filter((id) => id !== 'system');
}

interface Writer {
  readonly zone: string;
  say(sentence: Text): string;
  /** A sentence of a finding, a plan or a refusal: data of the cluster stands in it. */
  quote(sentence: Text, most?: number): string;
  at(time: string | null): string;
  person(id: string | null): string;
}

function writerOf({ language, timeZone, names }: PostmortemOptions): Writer {
  const zone = isTimeZone(timeZone) ? timeZone : 'UTC';
  const say = (sentence: Text) => textIn(sentence, language);
  return {
    zone,
    say,
    quote: (sentence, most) => prose(say(sentence), most),
    at: (time) => (msOf(time) === undefined ? say(unknownTime) : code(localTime(msOf(time) ?? 0, zone))),
    person(id) {
      if (id === null) return say({ en: 'nobody', zh: '无人' });
      if (id === 'system') return say({ en: 'the bot', zh: '机器人' });
      const name = names?.get(id);
      if (name === undefined || name === '') return code(id, 80);
      const [shown, exact] = [prose(name, 80), code(id, 80)];
      return say({ en: en`${shown} (${exact})`, zh: zh`${shown}（${exact}）` });
    },
  };
}

const unknownTime: Text = { en: 'at a time that is not known', zh: '时间不详' };

function msOf(time: string | null | undefined): number | undefined {
  if (time === null || time === undefined) return undefined;
  const ms = Date.parse(time);
  return Number.isNaN(ms) ? undefined : ms;
}

/** `43 min 12 s`, `10 h 5 min`, `2 d 3 h`: two units, rounded down. */
export function span(ms: number): Text {
  const s = Math.max(0, Math.floor(ms / 1000));
  const units: readonly (readonly [number, string, string])[] = [
    [86_400, 'd', '天'],
    [3600, 'h', '小时'],
    [60, 'min', '分钟'],
    [1, 's', '秒'],
  ];
  const from = Math.max(
    0,
    units.findIndex(([size]) => s >= size),
  );
  const start = s === 0 ? 3 : from;
  let left = s;
  const parts = units.slice(start, start + 2).flatMap(([size, english, chinese]) => {
    const n = Math.floor(left / size);
    left -= n * size;
    return n === 0 && s > 0 ? [] : [{ en: en`${n} ${english}`, zh: zh`${n} ${chinese}` }];
  });
  return { en: parts.map((part) => part.en).join(' '), zh: parts.map((part) => part.zh).join(' ') };
}

function between(from: string | null, to: string | null): Text | undefined {
  const [a, b] = [msOf(from), msOf(to)];
  return a === undefined || b === undefined || b < a ? undefined : span(b - a);
}

function list(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join('\n');
}

/** The first of many, and how many more there are. */
function some<T>(things: readonly T[], most: number, w: Writer, write: (thing: T) => string): readonly string[] {
  const left = things.length - most;
  const lines = things.slice(0, most).map(write);
  return left > 0
    ? [...lines, w.say({ en: en`and ${left} more, which are left out here`, zh: zh`另有 ${left} 项，此处从略` })]
    : lines;
}

// --- what was found

/** One cause over the whole incident: as it was first read, and until when it was seen. */
interface CauseSeen {
  readonly finding: Finding;
  readonly effects: readonly Finding[];
  readonly readAt: string;
  readonly firstAt: string;
  lastAt: string;
  /** The next diagnosis that did not find it any more. */
  goneAt: string | null;
}

/** What is kept of diagnoses; of an incident that is older than that record, the last report. */
function historyOf(facts: IncidentFacts): readonly DiagnosisHistory[] {
  const { report } = facts.incident;
  if (facts.diagnoses.length > 0 || report === null) return facts.diagnoses;
  return [{ at: report.now, lastAt: report.now, report }];
}

function causesIn(facts: IncidentFacts): readonly CauseSeen[] {
  const seen = new Map<string, CauseSeen>();
  for (const { at, lastAt, report } of historyOf(facts)) {
    const here = new Set<string>();
    for (const finding of report.findings) {
      if (finding.causedBy !== null || !isWorthAThread(finding)) continue;
      const key = causeKey(finding);
      here.add(key);
      const known = seen.get(key);
      if (known) {
        known.lastAt = lastAt;
        known.goneAt = null;
      } else {
        const effects = effectsOf(finding, report);
        seen.set(key, { finding, effects, readAt: report.now, firstAt: at, lastAt, goneAt: null });
      }
    }
    for (const [key, cause] of seen) if (!here.has(key)) cause.goneAt ??= at;
  }
  const rank = ({ finding }: CauseSeen) => (isTrouble(finding) ? 0 : 2) + (finding.severity === 'critical' ? 0 : 1);
  return [...seen.values()].toSorted((a, b) => rank(a) - rank(b));
}

/** What follows from a finding, directly or not; a circle ends where it began. */
function effectsOf(cause: Finding, report: Report): readonly Finding[] {
  const ids = new Set([cause.id]);
  const found: Finding[] = [];
  for (let grown = true; grown; ) {
    grown = false;
    for (const finding of report.findings) {
      if (finding.causedBy === null || !ids.has(finding.causedBy) || ids.has(finding.id)) continue;
      ids.add(finding.id);
      found.push(finding);
      grown = true;
    }
  }
  return found;
}

function firstAlert(facts: IncidentFacts): AlertHistory | undefined {
  return facts.alerts
    .filter(({ startsAt }) => msOf(startsAt) !== undefined)
    .toSorted((a, b) => (msOf(a.startsAt) ?? 0) - (msOf(b.startsAt) ?? 0))[0];
}

function alertName({ name, object: [kind, ...path] }: AlertHistory, w: Writer): string {
  if (kind === undefined) return code(name);
  const about = code(path.length === 0 ? kind : `${kind} ${path.join('/')}`);
  return w.say({ en: en`${code(name)} about ${about}`, zh: zh`${code(name)}（${about}）` });
}

// --- the parts

function heading({ incident }: IncidentFacts, seen: readonly CauseSeen[], w: Writer): readonly string[] {
  const about = code(w.say(scopeInWords(incident.scope)));
  const [first] = seen;
  const fault = first === undefined ? undefined : code(first.finding.fault);
  const what: Text = { en: fault === undefined ? '' : `: ${fault}`, zh: fault === undefined ? '' : `：${fault}` };
  return [
    w.say({ en: en`# Post-mortem ${code(incident.id)}${what}`, zh: zh`# 事故复盘 ${code(incident.id)}${what}` }),
    w.say({
      en: en`${about} in cluster ${code(incident.cluster)}. All times are in ${code(w.zone)}, with the offset from UTC. Written from the records of the bot alone: what they do not tell is said not to be known. Times of alerts are those of their senders.`,
      zh: zh`集群 ${code(incident.cluster)} 中的 ${about}。所有时间均为 ${code(w.zone)} 时间，并附与 UTC 的偏移。仅依据机器人的记录写成：记录中没有的内容会说明为未知。告警的时间以其发送方为准。`,
    }),
  ];
}

function summary(facts: IncidentFacts, seen: readonly CauseSeen[], w: Writer): readonly string[] {
  const { incident, plans } = facts;
  const [first, ...others] = seen;
  const lines = [
    first === undefined
      ? w.say({
          en: '**What:** no cause was found; see below what is known.',
          zh: '**概况**：没有找到原因；已知内容见下文。',
        })
      : w.say({
          en: en`**What:** ${w.quote(first.finding.summary)}${others.length === 0 ? '' : en` (and ${count(others.length, otherCauses)})`}`,
          zh: zh`**概况**：${w.quote(first.finding.summary)}${others.length === 0 ? '' : zh`（另有 ${count(others.length, otherCauses)}）`}`,
        }),
    w.say({ en: en`**Severity:** ${severityOf(incident)}`, zh: zh`**严重程度**：${severityOf(incident)}` }),
    w.say({ en: en`**Told by:** ${opener(facts, w)}`, zh: zh`**发现方式**：${opener(facts, w)}` }),
    w.say({ en: en`**How it ended:** ${ending(facts, w)}`, zh: zh`**结果**：${ending(facts, w)}` }),
    w.say({ en: en`**Changes by the bot:** ${planCounts(plans)}`, zh: zh`**机器人所做的更改**：${planCounts(plans)}` }),
  ];
  return [w.say({ en: '## Summary', zh: '## 摘要' }), list(lines)];
}

const otherCauses = { en: ['other cause', 'other causes'], zh: '个其他原因' } as const;

function severityOf({ severity }: Incident): Text {
  switch (severity) {
    case 'critical':
      return { en: 'critical', zh: '严重' };
    case 'warning':
      return { en: 'warning', zh: '警告' };
    case 'info':
      return { en: 'for information', zh: '供参考' };
    default:
      return { en: 'not known', zh: '未知' };
  }
}

function opener(facts: IncidentFacts, w: Writer): Text {
  const { incident } = facts;
  const at = w.at(incident.openedAt);
  if (incident.origin === 'person') {
    const who = w.person(incident.requester);
    return { en: en`${who} asked for a diagnosis, ${at}`, zh: zh`${who} 请求诊断，${at}` };
  }
  if (incident.origin === 'scan')
    return { en: en`the bot’s own look at the cluster, ${at}`, zh: zh`机器人自行检查集群，${at}` };
  const told = facts.moves.find(({ kind }) => kind === 'incident_opened')?.data['alert'];
  const name: Text =
    typeof told === 'string'
      ? { en: en`alert ${code(told)}`, zh: zh`告警 ${code(told)}` }
      : { en: 'an alert', zh: '告警' };
  return { en: en`${name}, ${at}`, zh: zh`${name}，${at}` };
}

function ending({ incident }: IncidentFacts, w: Writer): Text {
  if (!isOver(incident.state))
    return {
      en: 'it was not over when this was written.',
      zh: '撰写本文时尚未结束。',
    };
  const at = w.at(incident.resolvedAt);
  const lasted = between(incident.openedAt, incident.resolvedAt);
  const back = incident.reopened;
  const again: Text = {
    en: back === 0 ? '' : en` It came back ${back} ${plural(back, 'time', 'times')} before.`,
    zh: back === 0 ? '' : zh`此前复发 ${back} 次。`,
  };
  const gone = incident.problem === null ? undefined : w.quote(incident.problem);
  const how: Text =
    gone === undefined
      ? { en: en`found well again ${at}`, zh: zh`${at} 诊断确认已恢复` }
      : { en: en`what it was about was gone ${at}: ${gone}`, zh: zh`${at} 所涉对象已不存在：${gone}` };
  return lasted === undefined
    ? { en: en`${how}.${again}`, zh: zh`${how}。${again}` }
    : {
        en: en`${how}, ${lasted} after the incident was opened.${again}`,
        zh: zh`${how}，距事故建立 ${lasted}。${again}`,
      };
}

function planCounts(plans: readonly Plan[]): Text {
  const carried = plans.filter(wasBegun);
  if (carried.length === 0)
    return {
      en: 'none was carried out; whatever changed was changed by somebody else.',
      zh: '没有执行任何更改；发生的变化均由他人所为。',
    };
  const done = carried.filter(({ state }) => state === 'SUCCEEDED').length;
  return {
    en: en`${carried.length} ${plural(carried.length, 'plan', 'plans')} carried out, ${done} of them done and verified.`,
    zh: zh`执行了 ${carried.length} 个计划，其中 ${done} 个已完成并通过验证。`,
  };
}

/** Whether anything of it may have been sent. */
function wasBegun(plan: Plan): boolean {
  return plan.steps.some(({ state }) => state !== 'PENDING' && state !== 'SKIPPED') || plan.state === 'SUCCEEDED';
}

interface Sufferer {
  readonly ref: Ref;
  firstAt: string;
  lastAt: string;
  wellAt: string | null;
}

function impact(facts: IncidentFacts, w: Writer): readonly string[] {
  const objects = new Map<string, Sufferer>();
  for (const { at, lastAt, report } of historyOf(facts)) {
    const here = new Set<string>();
    for (const ref of report.findings.filter(isWorthAThread).flatMap(({ affected }) => affected)) {
      const key = refKey(ref);
      here.add(key);
      const known = objects.get(key);
      if (known) {
        known.lastAt = lastAt;
        known.wellAt = null;
      } else objects.set(key, { ref, firstAt: at, lastAt, wellAt: null });
    }
    for (const [key, object] of objects) if (!here.has(key)) object.wellAt ??= at;
  }
  const sufferers = [...objects.values()];
  const lines = some(sufferers, MOST.affected, w, (one) => suffererLine(one, w));
  return [
    w.say({ en: '## Impact', zh: '## 影响' }),
    began(facts, w),
    lines.length === 0
      ? w.say({ en: 'Nobody was seen to suffer from it.', zh: '没有发现受影响的对象。' })
      : list(lines),
    ...paces(facts, w),
  ];
}

/** When the trouble began is not what anybody saw: it is said what the first sign of it was. */
function began(facts: IncidentFacts, w: Writer): string {
  const first = historyOf(facts)[0];
  const alert = firstAlert(facts);
  const signs: Text[] = [];
  if (alert) {
    const [name, at] = [alertName(alert, w), w.at(alert.startsAt)];
    signs.push({
      en: en`The first sign is alert ${name}, ${at}; an alert fires some time after its trouble began.`,
      zh: zh`最早的迹象是告警 ${name}，${at}；告警在问题出现一段时间之后才会触发。`,
    });
  }
  if (first) {
    const at = w.at(first.at);
    signs.push({ en: en`The bot first read it ${at}.`, zh: zh`机器人首次读取是在 ${at}。` });
  }
  const signsIn = (language: Language) => signs.map((sign) => sign[language]).join(language === 'en' ? ' ' : '');
  return w.say({
    en: en`When the trouble itself began is not recorded. ${signsIn('en')}`.trim(),
    zh: zh`问题本身从何时开始没有记录。${signsIn('zh')}`.trim(),
  });
}

function suffererLine({ ref, firstAt, lastAt, wellAt }: Sufferer, w: Writer): string {
  const who = code(describeRef(ref));
  const [first, last, well] = [w.at(firstAt), w.at(lastAt), w.at(wellAt)];
  const least = between(firstAt, lastAt);
  const most = wellAt === null ? undefined : between(firstAt, wellAt);
  if (most === undefined)
    return w.say({
      en: en`${who}: seen to suffer from ${first} to ${last}${least === undefined ? '' : en`, at least ${least}`}; not seen well since`,
      zh: zh`${who}：从 ${first} 到 ${last} 观察到受影响${least === undefined ? '' : zh`，至少 ${least}`}；此后未见恢复`,
    });
  return w.say({
    en: en`${who}: seen to suffer from ${first}, no longer ${well}: between ${least} and ${most}`,
    zh: zh`${who}：从 ${first} 起观察到受影响，${well} 起不再受影响：历时在 ${least} 与 ${most} 之间`,
  });
}

/** Where the time went, as far as both ends are known. */
function paces(facts: IncidentFacts, w: Writer): readonly string[] {
  const { incident, plans } = facts;
  const alertAt = firstAlert(facts)?.startsAt ?? null;
  const foundAt = historyOf(facts)[0]?.at ?? null;
  const begun = plans.filter(wasBegun);
  const votedAt = earliest(begun.flatMap(({ votes }) => votes.map(({ at }) => at)));
  const sentAt = earliest(begun.flatMap(({ steps }) => steps.flatMap(({ at }) => at ?? [])));
  const rows: readonly (readonly [Text, string | null, string | null])[] = [
    [{ en: 'first alert to incident', zh: '从首次告警到建立事故' }, alertAt, incident.openedAt],
    [{ en: 'incident to first diagnosis', zh: '从建立事故到首次诊断' }, incident.openedAt, foundAt],
    [{ en: 'first diagnosis to first vote', zh: '从首次诊断到首次投票' }, foundAt, votedAt],
    [{ en: 'first vote to first result of a change', zh: '从首次投票到首个更改的结果' }, votedAt, sentAt],
    [{ en: 'first result of a change to recovery', zh: '从首个更改的结果到恢复' }, sentAt, incident.resolvedAt],
  ];
  const lines = rows.flatMap(([what, from, to]) => {
    const took = between(from, to);
    return took === undefined ? [] : [w.say({ en: en`${what}: ${took}`, zh: zh`${what}：${took}` })];
  });
  if (lines.length === 0) return [];
  return [
    w.say({ en: 'How long each part took, as far as it is known:', zh: '各阶段所用时间（仅列已知部分）：' }),
    list(lines),
  ];
}

function earliest(times: readonly string[]): string | null {
  return (
    times.filter((time) => msOf(time) !== undefined).toSorted((a, b) => (msOf(a) ?? 0) - (msOf(b) ?? 0))[0] ?? null
  );
}

// --- timeline

interface Entry {
  readonly at: string | null;
  readonly says: Text;
}

function timeline(facts: IncidentFacts, w: Writer): readonly string[] {
  const entries = [
    ...alertEntries(facts.alerts, w),
    ...diagnosisEntries(facts),
    ...facts.joined.map(({ id, scope, at }): Entry => {
      const [name, about] = [code(id), code(w.say(scopeInWords(scope)))];
      return {
        at,
        says: {
          en: en`Incident ${name} (${about}) turned out to be the same trouble and joined this one`,
          zh: zh`事故 ${name}（${about}）查明为同一问题，并入本事故`,
        },
      };
    }),
    ...facts.plans.flatMap((plan) => planEntries(plan, w)),
    // What follows from a vote or a diagnosis has its very time, and stands after it.
    ...facts.moves.flatMap((move) => moveEntry(move, facts, w)),
  ];
  const isOpeningTold = facts.moves.some(({ kind }) => kind === 'incident_opened');
  if (!isOpeningTold)
    entries.push({ at: facts.incident.openedAt, says: { en: 'The incident was opened', zh: '事故建立' } });
  const isEndTold = facts.moves.some(({ kind }) => kind === 'incident_resolved');
  if (!isEndTold && facts.incident.resolvedAt !== null)
    entries.push({ at: facts.incident.resolvedAt, says: { en: 'The incident was over', zh: '事故结束' } });
  const far = Number.POSITIVE_INFINITY;
  const sorted = entries.toSorted((a, b) => (msOf(a.at) ?? far) - (msOf(b.at) ?? far));
  const lines = some(sorted, MOST.entries, w, ({ at, says }) => `${w.at(at)} ${w.say(says)}`);
  return [
    w.say({ en: '## Timeline', zh: '## 时间线' }),
    facts.isCut
      ? w.say({
          en: 'Older events than these were not read; the audit trail has them.',
          zh: '更早的事件未读取；审计记录中有这些事件。',
        })
      : '',
    list(lines),
  ];
}

function alertEntries(alerts: readonly AlertHistory[], w: Writer): readonly Entry[] {
  return alerts.flatMap((alert) => {
    const [name, source] = [alertName(alert, w), prose(alert.source, 40)];
    const { times } = alert;
    const often: Text = {
      en: times > 1 ? en`, ${times} times in all` : '',
      zh: times > 1 ? zh`，共 ${times} 次` : '',
    };
    const begin: Entry = {
      at: alert.startsAt,
      says: {
        en: en`Alert ${name} fires (${code(alert.severity)}, told by ${source}${often})`,
        zh: zh`告警 ${name} 触发（${code(alert.severity)}，来自 ${source}${often}）`,
      },
    };
    if (alert.isFiring) return [begin];
    const end: Entry = {
      at: alert.endsAt,
      says: { en: en`Alert ${name} is over`, zh: zh`告警 ${name} 结束` },
    };
    return [begin, end];
  });
}

function moveEntry({ kind, at, actor, plan, data }: Move, facts: IncidentFacts, w: Writer): readonly Entry[] {
  const who = w.person(actor);
  const alert = typeof data['alert'] === 'string' ? code(data['alert']) : undefined;
  switch (kind) {
    case 'incident_opened':
      return [
        {
          at,
          says:
            alert === undefined
              ? { en: en`The incident was opened by ${who}`, zh: zh`${who} 建立了事故` }
              : { en: en`The incident was opened by alert ${alert}`, zh: zh`告警 ${alert} 建立了事故` },
        },
      ];
    case 'incident_joined':
      if (actor === 'system') return [];
      return [{ at, says: { en: en`${who} asked for another diagnosis`, zh: zh`${who} 请求再次诊断` } }];
    case 'incident_reopened':
      return [{ at, says: { en: 'The same trouble came back', zh: '同一问题再次出现' } }];
    case 'incident_resolved':
      return [{ at, says: { en: '**The incident was resolved**', zh: '**事故已解决**' } }];
    case 'diagnosis_recorded': {
      if (facts.diagnoses.length > 0) return [];
      const faults = faultsTold(data);
      const what = faults.length === 0 ? undefined : faults.map((fault) => code(fault)).join(', ');
      return [
        {
          at,
          says:
            what === undefined
              ? { en: 'Diagnosis: nothing was found', zh: '诊断：没有发现问题' }
              : { en: en`Diagnosis: ${what}`, zh: zh`诊断：${what}` },
        },
      ];
    }
    case 'vote_refused': {
      const [name, why] = [code(plan ?? ''), w.quote(verbatim(typeof data['says'] === 'string' ? data['says'] : ''))];
      return [
        {
          at,
          says: {
            en: en`A vote of ${who} on plan ${name} was refused: ${why}`,
            zh: zh`${who} 对计划 ${name} 的投票被拒绝：${why}`,
          },
        },
      ];
    }
    case 'plan_state':
      return planMoveEntry({ kind, at, actor, plan, data }, w);
    default:
      return [];
  }
}

const toldStates: ReadonlySet<PlanState> = new Set([
  'APPROVED',
  'EXECUTING',
  'VERIFYING',
  'HALTED',
  'NEEDS_ATTENTION',
  'SUCCEEDED',
  'FAILED',
  'REJECTED',
]);

/** What people asked for and what became of it; that an offer went by unused is no news. */
function planMoveEntry({ at, plan, data }: Move, w: Writer): readonly Entry[] {
  const { from, says } = data;
  const to = planStates.find((state) => state === data['to']);
  if (to === undefined || !toldStates.has(to) || from === to) return [];
  const name = code(plan ?? '');
  const why: Text =
    typeof says === 'string'
      ? { en: en`: ${w.quote(verbatim(says))}`, zh: zh`：${w.quote(verbatim(says))}` }
      : { en: '', zh: '' };
  return [
    {
      at,
      says: { en: en`Plan ${name}: ${describeState(to)}${why}`, zh: zh`计划 ${name}：${describeState(to)}${why}` },
    },
  ];
}

function faultsTold(data: Readonly<Record<string, unknown>>): readonly string[] {
  const { findings } = data;
  if (!Array.isArray(findings)) return [];
  return findings.flatMap((finding: unknown) =>
    typeof finding === 'object' && finding !== null && 'fault' in finding && typeof finding.fault === 'string'
      ? [finding.fault]
      : [],
  );
}

function diagnosisEntries(facts: IncidentFacts): readonly Entry[] {
  return facts.diagnoses.map(({ at, report }) => {
    const roots = report.findings.filter(({ causedBy }) => causedBy === null);
    const told = roots.filter(isWorthAThread);
    const shown = (told.length > 0 ? told : roots).slice(0, 5).map((finding) => code(finding.fault));
    const open = report.unexplained.length + report.unknown.length;
    if (told.length > 0) {
      const left = told.length - shown.length;
      const more: Text = { en: left > 0 ? en` and ${left} more` : '', zh: left > 0 ? zh` 及另外 ${left} 项` : '' };
      return {
        at,
        says: {
          en: en`Diagnosis found ${shown.join(', ')}${more}`,
          zh: zh`诊断发现 ${shown.join('、')}${more}`,
        },
      };
    }
    if (open > 0)
      return {
        at,
        says: {
          en: 'Diagnosis found no trouble, but not everything could be read or explained',
          zh: '诊断没有发现问题，但并非所有内容都能读取或解释',
        },
      };
    return { at, says: { en: 'Diagnosis found nothing wrong', zh: '诊断没有发现问题' } };
  });
}

function planEntries(plan: Plan, w: Writer): readonly Entry[] {
  const name = code(plan.id);
  const votes = plan.votes.map(({ user, decision, at }): Entry => {
    const who = w.person(user);
    return {
      at,
      says:
        decision === 'approve'
          ? { en: en`${who} approved plan ${name}`, zh: zh`${who} 批准了计划 ${name}` }
          : { en: en`${who} rejected plan ${name}`, zh: zh`${who} 拒绝了计划 ${name}` },
    };
  });
  const steps = plan.steps
    .filter(({ state }) => state !== 'PENDING' && state !== 'SKIPPED')
    .map(({ no, write, state, at }): Entry => {
      const what = code(describeWrite(write));
      return {
        at,
        says: {
          en: en`Step ${no} of plan ${name}, ${what}: ${describeStepState(state)}`,
          zh: zh`计划 ${name} 的第 ${no} 步，${what}：${describeStepState(state)}`,
        },
      };
    });
  return [...votes, ...steps];
}

// --- cause

function causes(facts: IncidentFacts, seen: readonly CauseSeen[], w: Writer): readonly string[] {
  const parts = [w.say({ en: '## Cause', zh: '## 原因' })];
  if (seen.length === 0) parts.push(noCause(facts, w));
  const shown = seen.slice(0, MOST.causes);
  shown.forEach((cause, index) => {
    parts.push(...causePart(cause, index + 1, w));
  });
  const left = seen.length - shown.length;
  if (left > 0)
    parts.push(
      w.say({ en: en`And ${left} more causes, which are left out here.`, zh: zh`另有 ${left} 个原因，此处从略。` }),
    );
  const last = historyOf(facts).findLast(({ report }) => report.unexplained.length + report.unknown.length > 0);
  if (!last) return parts;
  const open = [
    ...some(last.report.unexplained, MOST.evidence, w, ({ object, says }) =>
      w.say({
        en: en`not explained: ${code(describeRef(object))}, ${w.quote(says)}`,
        zh: zh`无法解释：${code(describeRef(object))}，${w.quote(says)}`,
      }),
    ),
    ...some(last.report.unknown, MOST.evidence, w, ({ fault, reason }) =>
      w.say({
        en: en`not decided: ${code(fault)}, ${w.quote(reason)}`,
        zh: zh`无法判定：${code(fault)}，${w.quote(reason)}`,
      }),
    ),
  ];
  return [
    ...parts,
    w.say({
      en: en`What stayed open, as read ${w.at(last.report.now)}:`,
      zh: zh`仍未明确的内容（读取于 ${w.at(last.report.now)}）：`,
    }),
    list(open),
  ];
}

function noCause(facts: IncidentFacts, w: Writer): string {
  const isOlder = facts.diagnoses.length === 0 && facts.moves.some((move) => faultsTold(move.data).length > 0);
  if (isOlder)
    return w.say({
      en: 'The diagnoses of this incident are older than the record of what they read: the timeline names what they found, the evidence is not known any more.',
      zh: '本事故的诊断早于读取内容的留存：时间线中列出了所发现的问题，其证据已不可知。',
    });
  return w.say({ en: 'Not known: no diagnosis found a cause.', zh: '未知：没有诊断找到原因。' });
}

function causePart(
  { finding, effects, readAt, firstAt, lastAt, goneAt }: CauseSeen,
  no: number,
  w: Writer,
): readonly string[] {
  const [first, last, gone] = [w.at(firstAt), w.at(lastAt), w.at(goneAt)];
  const until: Text =
    goneAt === null
      ? { en: en`last found ${last}`, zh: zh`最后一次发现于 ${last}` }
      : { en: en`no longer found ${gone}`, zh: zh`${gone} 起不再发现` };
  const evidence = some(finding.evidence, MOST.evidence, w, ({ object, path, value, says }) =>
    w.say({
      en: en`${code(describeRef(object))}, ${code(path)} is ${code(value)}: ${w.quote(says)}`,
      zh: zh`${code(describeRef(object))}，${code(path)} 为 ${code(value)}：${w.quote(says)}`,
    }),
  );
  const unread = finding.unread.map(({ resource, reason }) =>
    w.say({
      en: en`not read: ${code(resource)} (${w.quote(reason)})`,
      zh: zh`未读取：${code(resource)}（${w.quote(reason)}）`,
    }),
  );
  const follows = some(effects, MOST.effects, w, (effect) =>
    w.say({
      en: en`${code(effect.fault)}: ${w.quote(effect.summary)}`,
      zh: zh`${code(effect.fault)}：${w.quote(effect.summary)}`,
    }),
  );
  const about = code(describeRef(finding.subject));
  return [
    `### ${no}. ${code(finding.fault)} ${about}`,
    w.say(sentences(verbatim(w.quote(finding.summary)), verbatim(w.quote(finding.explanation)))),
    w.say({ en: en`First found ${first}, ${until}.`, zh: zh`首次发现于 ${first}，${until}。` }),
    evidence.length + unread.length === 0
      ? w.say({ en: 'No evidence is kept of it.', zh: '没有留存其证据。' })
      : w.say({ en: en`Evidence, as read ${w.at(readAt)}:`, zh: zh`证据（读取于 ${w.at(readAt)}）：` }),
    list([...evidence, ...unread]),
    follows.length === 0 ? '' : w.say({ en: 'What followed from it:', zh: '由此引起：' }),
    list(follows),
  ];
}

// --- changes

function changes(facts: IncidentFacts, w: Writer): readonly string[] {
  const told = facts.plans.filter((plan) => wasBegun(plan) || plan.votes.length > 0 || !isTerminal(plan.state));
  const quiet = facts.plans.length - told.length;
  const parts = [w.say({ en: '## Changes', zh: '## 更改' })];
  if (told.length === 0) parts.push(w.say({ en: 'Nothing was changed by the bot.', zh: '机器人没有做任何更改。' }));
  for (const plan of told.slice(0, MOST.plans)) parts.push(...planPart(plan, w));
  const left = told.length - MOST.plans;
  if (left > 0)
    parts.push(
      w.say({ en: en`And ${left} more plans, which are left out here.`, zh: zh`另有 ${left} 个计划，此处从略。` }),
    );
  if (quiet > 0)
    parts.push(
      w.say({
        en: en`${quiet} more ${plural(quiet, 'plan was', 'plans were')} offered, and nobody voted on ${plural(quiet, 'it', 'them')}.`,
        zh: zh`另提出过 ${quiet} 个计划，没有人投票。`,
      }),
    );
  parts.push(
    w.say({
      en: 'What people changed by hand is not recorded here.',
      zh: '人工所做的更改不在此记录中。',
    }),
  );
  return parts;
}

const risks: Readonly<Record<Risk, Text>> = {
  low: { en: 'low', zh: '低' },
  medium: { en: 'medium', zh: '中' },
  high: { en: 'high', zh: '高' },
  critical: { en: 'critical', zh: '极高' },
};

const losses: Readonly<Record<DataLoss, Text>> = {
  none: { en: 'none', zh: '无' },
  possible: { en: 'possible', zh: '可能' },
  certain: { en: 'certain', zh: '必然' },
};

function planPart(plan: Plan, w: Writer): readonly string[] {
  const quorum = quorumOf(plan, plan.votes);
  const requester =
    plan.requester === null
      ? w.say({
          en: 'nobody: it was offered on account of an alert or the bot’s own look',
          zh: '无：因告警或机器人自行检查而提出',
        })
      : w.person(plan.requester);
  const reason: Text =
    plan.stateReason === null
      ? { en: '', zh: '' }
      : { en: en` ${w.quote(plan.stateReason)}`, zh: zh`${w.quote(plan.stateReason)}` };
  const lines = [
    w.say({
      en: en`**Result:** ${describeState(plan.state)}.${reason}`,
      zh: zh`**结果**：${describeState(plan.state)}。${reason}`,
    }),
    w.say({
      en: en`**For:** ${code(plan.fault)}, by remediation ${code(plan.remediation)} (${risks[plan.risk]} risk, loss of data: ${losses[plan.dataLoss]})`,
      zh: zh`**针对**：${code(plan.fault)}，修复方式 ${code(plan.remediation)}（风险：${risks[plan.risk]}，数据损失：${losses[plan.dataLoss]}）`,
    }),
    w.say({
      en: en`**Requested by:** ${requester}, offered ${w.at(plan.createdAt)}`,
      zh: zh`**请求人**：${requester}，提出于 ${w.at(plan.createdAt)}`,
    }),
    w.say({
      en: en`**Approvals:** ${quorum.approvals} of ${quorum.needed} for ${code(plan.digest, 100)}`,
      zh: zh`**批准**：${quorum.approvals} / ${quorum.needed}，针对 ${code(plan.digest, 100)}`,
    }),
    ...plan.votes.map((vote) => voteLine(vote, w)),
    ...plan.steps.map((step) => stepLine(step, w)),
    w.say({ en: en`**To undo it:** ${w.quote(plan.undo)}`, zh: zh`**撤销方法**：${w.quote(plan.undo)}` }),
  ];
  return [
    w.say({
      en: en`### Plan ${code(plan.id)}: ${w.quote(plan.title, 200)}`,
      zh: zh`### 计划 ${code(plan.id)}：${w.quote(plan.title, 200)}`,
    }),
    list(lines),
  ];
}

function voteLine({ user, decision, at, proofs, reason }: Plan['votes'][number], w: Writer): string {
  const who = w.person(user);
  const words = [
    ...Object.entries(proofs).map(([proof, text]) => {
      const words = code(text ?? '', 2000);
      return w.say({ en: en`${code(proof)}: ${words}`, zh: zh`${code(proof)}：${words}` });
    }),
    ...(reason === null ? [] : [w.say({ en: en`reason: ${code(reason, 2000)}`, zh: zh`理由：${code(reason, 2000)}` })]),
  ];
  const stated =
    words.length === 0
      ? w.say({ en: 'nothing was asked or stated', zh: '没有要求或填写说明' })
      : w.say({ en: words.join('; '), zh: words.join('；') });
  return decision === 'approve'
    ? w.say({ en: en`Approved by ${who} ${w.at(at)}: ${stated}`, zh: zh`${who} 于 ${w.at(at)} 批准：${stated}` })
    : w.say({ en: en`Rejected by ${who} ${w.at(at)}: ${stated}`, zh: zh`${who} 于 ${w.at(at)} 拒绝：${stated}` });
}

function stepLine({ no, write, state, at, result }: Step, w: Writer): string {
  const what = code(describeWrite(write));
  const id = write.uid === null ? undefined : code(write.uid, 80);
  const uid: Text = { en: id === undefined ? '' : en` (uid ${id})`, zh: id === undefined ? '' : zh`（uid ${id}）` };
  const when = at === null ? '' : ` ${w.at(at)}`;
  const said: Text =
    result === null ? { en: '', zh: '' } : { en: en`: ${w.quote(result)}`, zh: zh`：${w.quote(result)}` };
  return w.say({
    en: en`Write ${no}: ${what}${uid}, ${describeStepState(state)}${when}${said}`,
    zh: zh`写操作 ${no}：${what}${uid}，${describeStepState(state)}${when}${said}`,
  });
}

// --- prevention

function prevention(
  facts: IncidentFacts,
  seen: readonly CauseSeen[],
  options: PostmortemOptions,
  w: Writer,
): readonly string[] {
  const found = seen.flatMap(({ finding, effects }) => [finding.fault, ...effects.map(({ fault }) => fault)]);
  const told = facts.diagnoses.length > 0 ? [] : facts.moves.flatMap(({ data }) => faultsTold(data));
  const faults = [...new Set([...found, ...told])];
  const lines = faults.map((fault) => {
    const says = options.prevention(fault);
    const words = says === undefined ? w.say({ en: 'not known', zh: '未知' }) : w.say(says);
    return w.say({ en: en`${code(fault)}: ${words}`, zh: zh`${code(fault)}：${words}` });
  });
  if (facts.alerts.length === 0 && facts.incident.origin === 'person')
    lines.push(
      w.say({
        en: 'No alert told of it: a person did. An alert on its first sign would have told earlier.',
        zh: '没有告警报告此事，而是由人发现的。针对其最早迹象设置告警可以更早得知。',
      }),
    );
  return [
    w.say({ en: '## What would have prevented it', zh: '## 如何预防' }),
    lines.length === 0 ? w.say({ en: 'Not known: no cause was found.', zh: '未知：没有找到原因。' }) : list(lines),
  ];
}
