import { requirementOf } from '../domain/approval.ts';
import type { Severity } from '../domain/fault.ts';
import { describeIncidentState, type IncidentState } from '../domain/incident.ts';
import { describeState, describeStepState, type PlanState, type StepState } from '../domain/plan.ts';
import { type DataLoss, type Proof, proofs, type Risk } from '../domain/remediation.ts';
import { type ScopeRef, scopeInWords } from '../domain/scope.ts';
import { count, duration, type Language, plural, textIn, en as write } from '../domain/text.ts';

const language = 'en' as const satisfies Language;
const risks: Readonly<Record<Risk, string>> = { low: 'low', medium: 'medium', high: 'high', critical: 'critical' };
const losses: Readonly<Record<DataLoss, string>> = {
  none: 'no data is lost',
  possible: '*data may be lost*',
  certain: '*data is destroyed*',
};
const severities: Readonly<Record<Severity, string>> = {
  critical: 'Critical',
  warning: 'Warning',
  info: 'For your information',
};
const number = (n: number) => write`${n}`;

/**
 * What views and the command line say around the sentences of findings and plans. What is handed in is written as it is:
 * a view has made it safe for Slack before. The type of this object is what every other language must have.
 */
export const en = {
  language,

  /** `and 3 more, which …`. */
  more: (n: number, where = '') => `and ${number(n)} more${where}`,
  morePlain: (n: number) => `and ${number(n)} more`,
  moreParts: (n: number) => `and ${number(n)} more parts, not shown here`,
  list: (items: readonly string[]) => items.join(', '),
  clauses: (items: readonly string[]) => items.join('; '),
  where: {
    evidenceButton: '; the button Evidence shows them',
    commandsButton: '; the button Commands shows them',
    inThread: ' in this thread',
    commandLine: ', which the command line prints',
    commandLineAll: '; the command line prints all of them',
    listedBy: (command: string) => `, which \`${command}\` lists`,
    printedBy: (command: string) => `, which \`${command}\` prints`,
    alsoListedBy: (command: string) => `; \`${command}\` lists them`,
  },
  nothingToSay: 'There is nothing to say.',

  severity: (severity: Severity) => severities[severity],
  risk: (risk: Risk) => `${risks[risk]} risk`,
  riskFirst: (risk: Risk) => `${risks[risk].slice(0, 1).toUpperCase()}${risks[risk].slice(1)} risk`,
  loss: (loss: DataLoss) => losses[loss],
  proof: (proof: Proof): string => proofs[proof].en,
  scope: (scope: ScopeRef) => textIn(scopeInWords(scope), language),
  planState: (state: PlanState) => describeState(state).en,
  incidentState: (state: IncidentState) => describeIncidentState(state).en,
  stepState: (state: StepState) => describeStepState(state).en,
  needs: (risk: Risk) => {
    const { people, requesterMay } = requirementOf(risk);
    if (people > 1) return `needs ${number(people)} people, none of them the one who asked`;
    return requesterMay ? 'needs one person' : 'needs one person other than the one who asked';
  },
  votes: (given: number, needed: number, approvers: string, rejecters: string) =>
    `${number(given)} of ${number(needed)} ${plural(needed, 'approval', 'approvals')}${approvers === '' ? '' : `: ${approvers}`}${rejecters === '' ? '' : `; rejected by ${rejecters}`}`,
  inProgress: (summary: string) => `In progress: ${summary}`,
  ofSeverity: (severity: Severity, summary: string) => `${severities[severity]}: ${summary}`,
  cluster: (name: string) => `cluster ${name}`,
  askedBy: (who: string) => `asked by ${who}`,
  seen: (when: string) => `seen ${when}`,
  plan: (id: string) => `plan ${id}`,

  incident: {
    gone: (about: string) => `Resolved :white_check_mark: ${about} is gone.`,
    nothingToDo: 'To do: nothing.',
    nothingHere: 'To do: nothing here.',
    problem: (about: string, why: string) => `Could not diagnose ${about}: ${why}`,
    removeCause: 'To do: remove that cause, then ask again in this thread with `recheck`.',
    diagnosing: (about: string) => `Diagnosing ${about}`,
    comes: 'Nothing to do yet: the answer comes in this message.',
    moreCauses: (n: number) => ` (and ${number(n)} more ${plural(n, 'cause', 'causes')})`,
    todo: (what: string) => `To do: ${what}`,
    goesOn: (about: string, link: string | null) =>
      `${about} suffers from a trouble that has a thread already; it goes on in ${link === null ? 'another thread' : `<${link}|this thread>`}.`,
    alert: (name: string, object: string, since: string, times: number, isOver: boolean) =>
      `${name} ${object} since ${since}${times > 1 ? `, ${number(times)} times` : ''}${isOver ? ', over' : ''}`,
    cameBack: (times: number) => `came back ${times === 1 ? 'once' : `${number(times)} times`}`,
    ownLook: 'found by the bot’s own look at the cluster',
    alerts: (list: string) => `alerts: ${list}`,
    wellBut: (about: string, summary: string) => `Nothing is wrong with ${about}. ${summary}`,
    well: (about: string) => `Nothing is wrong with ${about} :white_check_mark:`,
    allRead: 'To do: nothing. Everything that can make its storage stick was read and is in order.',
    wellAgain: (about: string, since: string | null) =>
      `Resolved :white_check_mark: ${about} is well again${since === null ? '' : ` since ${since}`}.`,
    unexplained: (object: string, says: string) =>
      `Unexplained: ${object} is not well, and nothing that I know explains it. ${says}`,
    personMustLook: 'To do: a person must look. The evidence below says what was checked.',
    uncertain: (about: string, checks: number) =>
      `Not certain: no trouble was found with ${about}, but ${number(checks)} ${plural(checks, 'check', 'checks')} could not be made.`,
    letRead: 'To do: let the bot read what is named below, then `recheck`.',
    lookAt: (title: string, state: PlanState) => `a person must look at “${title}”: it ${describeState(state).en}.`,
    wait: (title: string, state: PlanState) => `wait. “${title}” is ${describeState(state).en}.`,
    decide: (title: string, risk: string, needs: string) =>
      `approve or reject “${title}” in this thread (${risk}, ${needs}).`,
    waitForKubernetes: (again: string | null) =>
      `wait, Kubernetes is still working on it.${again === null ? '' : ` I look again ${again}.`}`,
    details: (says: string) => `${says} (details in this thread)`,
    seeThread: 'see this thread.',
    planLine: (title: string, state: PlanState) => `• “${title}”: ${describeState(state).en}`,
    causes: '*Causes*',
    effects: (n: number, causes: number) =>
      `${number(n)} ${plural(n, 'other finding follows', 'other findings follow')} from ${causes === 1 ? 'it' : 'them'}.`,
    notExplained: '*Not well, and not explained*',
    notTold: '*Could not be told*',
    pair: (name: string, says: string) => `${name}: ${says}`,
  },

  finding: {
    noMore: 'There is no more to say about it.',
    moreOffers: (n: number, command: string) => `and ${number(n)} more offers, which \`${command}\` lists`,
    moreFindings: (n: number) => `and ${number(n)} more findings, which the command line lists`,
    noRepair: 'No repair waits for approval.',
    repairs: (titles: string) => `Repairs to approve or reject: ${titles}.`,
    gone: (was: string) => `No longer found: ${was}`,
    followsFrom: (cause: string) => `*Follows from:* ${cause}`,
    suffers: (who: string) => `*Who suffers:* ${who}`,
    effects: '*What follows from it*',
    evidence: '*Evidence*',
    fact: (object: string, path: string, value: string, says: string) => `${object}, ${path} is ${value}: ${says}`,
    notRead: (kind: string, why: string) => `Not read: ${kind} (${why})`,
    byHand: '*What a person can do*',
    longCommand: '(the command is too long for here; the button Commands shows it)',
    noPlan: 'no plan was made for it; `recheck` makes one',
    notNow: (title: string) => `*Cannot be done now: ${title}*`,
    repair: (title: string) => `*Repair: ${title}*`,
    planIs: (state: PlanState, reason: string | null) =>
      `This plan is ${describeState(state).en}.${reason === null ? '' : ` ${reason}`}`,
    terms: (risk: string, loss: string, needs: string) => `${risk}, ${loss}, ${needs}.`,
    asked: 'Each approver is asked:',
    undo: (how: string) => `To undo it: ${how}`,
    open: (votes: string, until: string) => `${votes}. Open until ${until}.`,
    offerName: (remediation: string, target: string) =>
      `${remediation.replaceAll('-', ' ')}${target === '' ? '' : ` ${target}`}`,
  },

  buttons: {
    approve: 'Approve',
    approveLabel: (title: string) => `Approve: ${title}`,
    reject: 'Reject',
    rejectLabel: (title: string) => `Reject: ${title}`,
    recheck: 'Recheck',
    recheckLabel: 'Look again at this incident',
    evidence: 'Evidence',
    evidenceLabel: 'Show all evidence of this incident',
    commands: 'Commands',
    commandsLabel: 'Show the commands for doing it by hand',
    postmortem: 'Postmortem',
    postmortemLabel: 'Write what happened into this thread, as a file',
  },

  planMessage: {
    state: (title: string, state: PlanState) => {
      if (state === 'SUCCEEDED') return `“${title}” is done and verified :white_check_mark:`;
      if (state === 'FAILED') return `“${title}” failed :x:`;
      if (state === 'NEEDS_ATTENTION') return `“${title}” needs a person: its outcome is not certain :warning:`;
      return state === 'AWAITING_APPROVAL'
        ? `“${title}” waits for approval`
        : `“${title}” is ${describeState(state).en}`;
    },
    terms: (risk: string, loss: string, undo: string) => `${risk}, ${loss}. To undo it: ${undo}`,
    nothingYet: 'Nothing to do yet.',
    decide: (isAbove: boolean, until: string) =>
      `To do: approve or reject it ${isAbove ? 'above' : 'here'}, until ${until}.`,
    starts: (until: string | null) =>
      `It starts by itself${until === null ? '' : `, until ${until} at the latest`}. \`pause\` stops it.`,
    goesOn: 'Nothing to do: this message shows how it goes on.',
    resume: 'To do: `resume` makes a new plan of the remaining steps, which needs new votes.',
    look: 'To do: look at the objects below yourself. Nothing more is sent by the bot.',
    done: 'Nothing to do.',
    recheckShows: 'To do: `recheck` shows how things stand and what can be done now.',
    recheckMakes: 'To do: `recheck` makes a new plan.',
    newer: 'To do: a newer plan stands in this thread.',
    unchanged: 'Nothing was changed by it. `recheck` makes a new plan.',
  },

  modal: {
    approve: 'Approve',
    reject: 'Reject',
    approveTitle: 'Approve this repair',
    rejectTitle: 'Reject this repair',
    cancel: 'Cancel',
    close: 'Close',
    notCounted: 'Not counted',
    inCluster: (name: string) => `in cluster ${name}`,
    isNew: 'none, it is new',
    terms: (risk: string, loss: string, undo: string) => `${risk}, ${loss}. To undo it: ${undo}`,
    exactly: (writes: number) =>
      `*What exactly is sent, and nothing else* (${writes === 1 ? 'one write' : count(writes, { en: ['write', 'writes'], zh: '' }).en})`,
    kept: 'It is kept in the audit trail under your name.',
    whyApprove: 'Why do you approve it?',
    whyReject: 'Why do you reject it?',
    type: (name: string) => `Type ${name} to confirm`,
  },

  home: {
    title: 'Kubernetes storage',
    what: 'I find out why a volume, a claim or a pod is stuck, show the evidence, and repair it when people approve.',
    begin:
      '*To begin*, type `/k8s-storage diagnose` in a channel that I am in, or `/k8s-storage diagnose pvc/data-db-0 -n shop` for one object. `/k8s-storage help` lists every word.',
    thread:
      "*In an incident's thread* use the buttons, the message shortcut “Diagnose storage here”, or mention me with `status`, `recheck`, `evidence` or `commands`.",
    approval:
      '*Nothing is changed without approval.* A plan shows every write before anybody says yes, and every decision and step is kept in the audit trail.',
    clusters: (names: string) => `*Clusters*\n${names}`,
    nothingHere: 'Only members of this workspace see incidents and plans here.',
    notRead: 'How things stand could not be read just now. Open this tab again in a moment.',
    forYou: '*Waiting for you*',
    nothingForYou: 'No plan waits for you.',
    underWay: '*Under way*',
    nothingUnderWay: 'Nothing is being carried out.',
    waits: (title: string, risk: string, votes: string, until: string, link: string | null) =>
      `• ${link === null ? `“${title}”` : `<${link}|“${title}”>`} (${risk}; ${votes}), until ${until}`,
    runs: (title: string, state: PlanState, link: string | null) =>
      `• ${link === null ? `“${title}”` : `<${link}|“${title}”>`} ${describeState(state).en}`,
    asOf: (when: string) => `As of ${when}. This tab is brought up to date when it is opened.`,
    everybody: 'Everything that I post can be read by everybody in the channel.',
  },

  answers: {
    status: (incidents: number, repairs: number) =>
      `${number(incidents)} open ${plural(incidents, 'incident', 'incidents')}, ${number(repairs)} ${plural(repairs, 'repair', 'repairs')} under way or waiting.`,
    paused: (cluster: string, who: string, since: string) =>
      `Repairs in cluster ${cluster} are paused by ${who} since ${since}.`,
    recent: (open: number, ended: number) =>
      `${open === 0 ? 'No incident is open' : `${number(open)} ${plural(open, 'incident is', 'incidents are')} open`}; ${ended === 0 ? 'none' : number(ended)} ended within the last week.`,
    recentOpen: (what: string, suffers: string, since: string, place: string) =>
      `• ${what}${suffers === '' ? '' : ` Suffering: ${suffers}.`} Open for ${since} (${place}).`,
    recentEnded: (what: string, when: string, lasted: string, place: string) =>
      `• :white_check_mark: ${what} Ended ${when} after ${lasted} (${place}).`,
    recentPlace: (id: string, scope: string, cluster: string, link: string | null) =>
      `${link === null ? '' : `<${link}|thread>, `}${id}, ${scope} in ${cluster}`,
    notFound: 'Nothing is known of it yet.',
    and: (names: readonly string[], left: number) =>
      `${names.join(', ')}${left > 0 ? ` and ${number(left)} more` : ''}`,
    audit: (about: string, events: number) =>
      `Audit trail of ${about}: ${events === 0 ? 'nothing is recorded.' : `${number(events)} ${plural(events, 'event', 'events')}.`}`,
    noDiagnosis: 'There is no diagnosis yet.',
    read: (when: string) => `What was read ${when}:`,
    notRead: (kind: string, why: string) => `not read: ${kind} (${why})`,
    notTold: (fault: string, why: string) => `could not be told: ${fault} (${why})`,
    longCommand: (command: string) => `The command is too long for Slack; \`${command}\` prints it.`,
    nothingByHand: 'There is nothing to do by hand.',
    byHand: 'By hand, outside the bot. Nothing of it is checked or audited:',
    joined: (link: string) =>
      `This trouble has a thread already, and is diagnosed again there: <${link}|go to the thread>.`,
    postmortemThere: (link: string) =>
      `The post-mortem stands in the <${link}|thread> already. The command line writes it in another time zone.`,
    postmortemDone: (link: string) => `The post-mortem stands in the <${link}|thread>.`,
    inBackend: (change: string) => `in the storage backend: ${change}`,
    ofRisk: (what: string, risk: string) => `*${what}* (${risk})`,
    incidentLine: (id: string, scope: string, cluster: string, what: string) =>
      `• ${id}, ${scope} in ${cluster}: ${what}`,
    seeThread: 'see its thread',
    planLine: (title: string, id: string, state: PlanState) => `• “${title}” (${id}) ${describeState(state).en}`,
    auditLine: (seq: number, when: string, kind: string, who: string) =>
      `${seq}. ${when} ${kind.replaceAll('_', ' ')} by ${who}`,
    theBot: 'the bot',
    knowsOnly: (command: string) => `This app knows only \`${command}\`.`,
  },

  rush: {
    trouble: (n: number) => `${number(n)} with trouble`,
    waiting: (n: number) => `${number(n)} being diagnosed`,
    resolved: (n: number) => `${number(n)} resolved`,
    effects: (n: number) => `${number(n)} effects of one of them`,
    well: (n: number) => `${number(n)} whose storage is well`,
    what: (counts: string) => `Many alerts at once: ${counts}.`,
    todo: 'To do: begin with the threads below. Each trouble gets its own when it is diagnosed.',
    line: (scope: string, cluster: string, word: string, link: string | null) =>
      `• ${scope} of ${cluster}: ${word}${link === null ? '' : `, <${link}|thread>`}`,
    uncertain: 'uncertain',
    severity: (severity: Severity) => severities[severity].toLowerCase(),
  },

  stored: {
    none: 'no incidents',
    opened: (at: string) => `opened ${at}`,
    waiting: (n: number) => `${number(n)} waiting for approval`,
    lasts: (how: string, isOver: boolean) => (isOver ? `lasted ${how}` : `open for ${how}`),
    about: (id: string, scope: string, cluster: string) => `${id}: ${scope} in cluster ${cluster}`,
    labels: {
      state: 'state',
      opened: 'opened',
      resolved: 'resolved',
      thread: 'thread',
      problem: 'problem',
      finding: 'finding',
      plan: 'plan',
      because: 'because',
      next: 'next',
      incident: 'incident',
      digest: 'digest',
      risk: 'risk',
      requester: 'requester',
      approval: 'approval',
      vote: 'vote',
      step: (no: number) => `step ${no}`,
    },
    openedBy: (at: string, who: string) => `${at} by ${who}`,
    inCluster: (incident: string, cluster: string) => `${incident} in cluster ${cluster}`,
    risk: (risk: Risk, loss: DataLoss, undo: string) => `${risk}, loss of data: ${loss}; undo: ${undo}`,
    nobody: 'nobody',
    approval: (given: number, needed: number, until: string, startUntil: string | null) =>
      `${given} of ${needed}, until ${until}${startUntil === null ? '' : `; start until ${startUntil}`}`,
    reason: (what: string, why: string) => `${what}: ${why}`,
  },

  terminal: {
    heading: (object: string | null, cluster: string | null, now: string) =>
      `Storage of ${object ?? 'the whole cluster'}${cluster === null ? '' : ` on ${cluster}`}, ${now}`,
    clear: 'Nothing is wrong.',
    causes: (causes: number, effects: number) =>
      `${number(causes)} ${plural(causes, 'cause', 'causes')}${effects > 0 ? ` with ${number(effects)} ${plural(effects, 'effect', 'effects')}` : ''}.`,
    noAllClear: 'No fault was found, but this is no all-clear: see the end.',
    working: 'Nothing needs to be done yet: Kubernetes is still working on it.',
    worthKnowing: 'Nothing is wrong; there is something worth knowing.',
    progress: 'IN PROGRESS',
    info: 'FOR INFORMATION',
    cause: 'CAUSE',
    effectOf: (no: number) => `EFFECT OF ${no}`,
    title: (no: number, label: string, fault: string, severity: Severity, reason: string | null) =>
      `${no}. ${label}: ${fault} (${severity}${reason === null ? '' : `, reason ${reason}`})`,
    lookAgain: (ms: number) => `Look again in ${duration(ms).en}.`,
    suffering: (who: string) => `Suffering: ${who}`,
    evidence: 'Evidence',
    proven: (says: string, by: string) => `${says} (${by})`,
    evidenceLine: (object: string, says: string) => `${object}: ${says}`,
    unread: (kind: string, why: string) => `${kind} could not be read (${why}): the finding would be sharper with them`,
    unreadShort: (kind: string, why: string) => `${kind} could not be read (${why})`,
    offers: 'The bot can do this, once people approve it in Slack',
    byHand: 'By hand, safest first',
    offer: (remediation: string, risk: Risk, loss: DataLoss) => `${remediation} (risk ${risk}, data loss ${loss})`,
    does: (what: string) => `does: ${what}`,
    writes: (what: string) => `writes: ${what}`,
    undo: (how: string) => `undo: ${how}`,
    needs: (proof: string, question: string) => `needs: ${proof}. ${question}`,
    blocked: (why: string) => `blocked: ${why}`,
    digest: (digest: string) => `digest: ${digest}`,
    notExplained: 'NOT WELL, AND NO FINDING EXPLAINS IT',
    notExplainedTitle: 'Not well, and no finding explains it',
    notDecided: 'COULD NOT BE DECIDED',
    notDecidedTitle: 'Could not be decided',
    soNotDecided: (why: string, faults: string) => `${why} (so not decided: ${faults})`,
    cost: (objects: number, requests: number, kib: number, ms: number) =>
      `Read ${number(objects)} ${plural(objects, 'object', 'objects')} ${requests === 0 ? 'from files' : `with ${number(requests)} ${plural(requests, 'request', 'requests')}`} (${number(kib)} KiB) in ${number(ms)} ms.`,
  },
};

export type Locale = Omit<typeof en, 'language'> & { readonly language: Language };
