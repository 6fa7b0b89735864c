import { requirementOf } from '../domain/approval.ts';
import type { Severity } from '../domain/fault.ts';
import { describeIncidentState } from '../domain/incident.ts';
import { describeState, describeStepState, type PlanState } from '../domain/plan.ts';
import { type DataLoss, proofs, type Risk } from '../domain/remediation.ts';
import { scopeInWords } from '../domain/scope.ts';
import { duration, type Language, textIn, zh as write } from '../domain/text.ts';
import type { Locale } from './en.ts';

const language = 'zh' as const satisfies Language;
const risks: Readonly<Record<Risk, string>> = { low: '低风险', medium: '中风险', high: '高风险', critical: '极高风险' };
const losses: Readonly<Record<DataLoss, string>> = {
  none: '不会丢失数据',
  possible: '*可能丢失数据*',
  certain: '*数据会被销毁*',
};
const lossWords: Readonly<Record<DataLoss, string>> = { none: '不会丢失', possible: '可能丢失', certain: '会被销毁' };
const severities: Readonly<Record<Severity, string>> = { critical: '严重', warning: '警告', info: '供参考' };
const number = (n: number) => write`${n}`;
const state = (of: PlanState) => describeState(of).zh;

/** Simplified Chinese, in the words of docs/glossary-zh.md. */
export const zh: Locale = {
  language,

  more: (n, where = '') => `另外还有 ${number(n)} 项${where}`,
  morePlain: (n) => `以及另外 ${number(n)} 个`,
  moreParts: (n) => `另外还有 ${number(n)} 个部分，这里没有显示`,
  list: (items) => items.join('、'),
  clauses: (items) => items.join('；'),
  where: {
    evidenceButton: '，可用 Evidence（证据）按钮查看',
    commandsButton: '，可用 Commands（命令）按钮查看',
    inThread: '，见此消息列',
    commandLine: '，可用命令行查看',
    commandLineAll: '，命令行会全部列出',
    listedBy: (command) => `，可用 \`${command}\` 列出`,
    printedBy: (command) => `，可用 \`${command}\` 查看`,
    alsoListedBy: (command) => `，可用 \`${command}\` 列出`,
  },
  nothingToSay: '没有可说的内容。',

  severity: (severity) => severities[severity],
  risk: (risk) => risks[risk],
  riskFirst: (risk) => risks[risk],
  loss: (loss) => losses[loss],
  proof: (proof) => proofs[proof].zh,
  scope: (scope) => textIn(scopeInWords(scope), language),
  planState: state,
  incidentState: (of) => describeIncidentState(of).zh,
  stepState: (of) => describeStepState(of).zh,
  needs: (risk) => {
    const { people, requesterMay } = requirementOf(risk);
    if (people > 1) return `需要 ${number(people)} 个人批准，发起者除外`;
    return requesterMay ? '需要一个人批准' : '需要发起者以外的一个人批准';
  },
  votes: (given, needed, approvers, rejecters) =>
    `批准 ${number(given)}/${number(needed)}${approvers === '' ? '' : `：${approvers}`}${rejecters === '' ? '' : `；已被 ${rejecters} 拒绝`}`,
  inProgress: (summary) => `进行中：${summary}`,
  ofSeverity: (severity, summary) => `${severities[severity]}：${summary}`,
  cluster: (name) => `集群 ${name}`,
  askedBy: (who) => `由 ${who} 发起`,
  seen: (when) => `读取于 ${when}`,
  plan: (id) => `计划 ${id}`,

  incident: {
    gone: (about) => `已解决 :white_check_mark: ${about} 已不存在。`,
    nothingToDo: '待办：无。',
    nothingHere: '待办：这里无需处理。',
    problem: (about, why) => `未能诊断 ${about}：${why}`,
    removeCause: '待办：消除这个原因，然后在此消息列中用 `recheck` 再次检查。',
    diagnosing: (about) => `正在诊断 ${about}`,
    comes: '目前无需处理：结果会显示在这条消息中。',
    moreCauses: (n) => `（以及另外 ${number(n)} 个原因）`,
    todo: (what) => `待办：${what}`,
    goesOn: (about, link) =>
      `${about} 受到的影响来自一个已有消息列的问题；后续见${link === null ? '另一个消息列' : `<${link}|这个消息列>`}。`,
    alert: (name, object, since, times, isOver) =>
      `${name} ${object}，始于 ${since}${times > 1 ? `，共 ${number(times)} 次` : ''}${isOver ? '，已结束' : ''}`,
    cameBack: (times) => `再次出现 ${number(times)} 次`,
    ownLook: '由机器人自行检查集群时发现',
    alerts: (list) => `告警：${list}`,
    wellBut: (about, summary) => `${about} 没有问题。${summary}`,
    well: (about) => `${about} 没有问题 :white_check_mark:`,
    allRead: '待办：无。所有可能使其存储卡住的内容都已读取，并且一切正常。',
    wellAgain: (about, since) =>
      `已解决 :white_check_mark: ${about} ${since === null ? '已恢复正常' : `自 ${since} 起已恢复正常`}。`,
    unexplained: (object, says) => `无法解释：${object} 不正常，而我所知道的都无法解释。${says}`,
    personMustLook: '待办：必须由人工检查。下面的证据说明了检查过什么。',
    uncertain: (about, checks) => `不确定：没有发现 ${about} 的问题，但有 ${number(checks)} 项检查无法进行。`,
    letRead: '待办：让机器人能够读取下面列出的内容，然后 `recheck`。',
    lookAt: (title, of) => `必须由人工检查“${title}”：${state(of)}。`,
    wait: (title, of) => `请等待。“${title}”${state(of)}。`,
    decide: (title, risk, needs) => `请在此消息列中批准或拒绝“${title}”（${risk}，${needs}）。`,
    waitForKubernetes: (again) => `请等待，Kubernetes 仍在处理。${again === null ? '' : `我会在 ${again} 再次检查。`}`,
    details: (says) => `${says}（详情见此消息列）`,
    seeThread: '见此消息列。',
    planLine: (title, of) => `• “${title}”：${state(of)}`,
    causes: '*原因*',
    effects: (n) => `另外 ${number(n)} 项发现是由此引起的。`,
    notExplained: '*不正常，且无法解释*',
    notTold: '*无法判断*',
    pair: (name, says) => `${name}：${says}`,
  },

  finding: {
    noMore: '没有更多可说的内容。',
    moreOffers: (n, command) => `另外还有 ${number(n)} 项可行的修复，可用 \`${command}\` 列出`,
    moreFindings: (n) => `另外还有 ${number(n)} 项发现，可用命令行列出`,
    noRepair: '没有等待批准的修复。',
    repairs: (titles) => `等待批准或拒绝的修复：${titles}。`,
    gone: (was) => `已不再出现：${was}`,
    followsFrom: (cause) => `*起因：* ${cause}`,
    suffers: (who) => `*受影响者：* ${who}`,
    effects: '*由此引起*',
    evidence: '*证据*',
    fact: (object, path, value, says) => `${object}，${path} 为 ${value}：${says}`,
    notRead: (kind, why) => `未读取：${kind}（${why}）`,
    byHand: '*人工可以做的事*',
    longCommand: '（命令太长，这里放不下；可用 Commands（命令）按钮查看）',
    noPlan: '没有为它制定计划；`recheck` 会制定一个',
    notNow: (title) => `*目前无法执行：${title}*`,
    repair: (title) => `*修复：${title}*`,
    planIs: (of, reason) => `这个计划的状态是：${state(of)}。${reason === null ? '' : reason}`,
    terms: (risk, loss, needs) => `${risk}，${loss}，${needs}。`,
    asked: '每个批准人都要回答：',
    undo: (how) => `撤销方法：${how}`,
    open: (votes, until) => `${votes}。有效期至 ${until}。`,
    offerName: (remediation, target) => `${remediation}${target === '' ? '' : ` ${target}`}`,
  },

  buttons: {
    approve: '批准',
    approveLabel: (title) => `批准：${title}`,
    reject: '拒绝',
    rejectLabel: (title) => `拒绝：${title}`,
    recheck: '重新检查',
    recheckLabel: '重新检查这次事故',
    evidence: '证据',
    evidenceLabel: '显示这次事故的所有证据',
    commands: '命令',
    commandsLabel: '显示手动操作所用的命令',
    postmortem: '事故复盘',
    postmortemLabel: '将事故经过以文件形式写入此消息列',
  },

  planMessage: {
    state: (title, of) => {
      if (of === 'SUCCEEDED') return `“${title}”已完成并通过验证 :white_check_mark:`;
      if (of === 'FAILED') return `“${title}”失败 :x:`;
      if (of === 'NEEDS_ATTENTION') return `“${title}”需要人工处理：结果不确定 :warning:`;
      return `“${title}”${state(of)}`;
    },
    terms: (risk, loss, undo) => `${risk}，${loss}。撤销方法：${undo}`,
    nothingYet: '目前无需处理。',
    decide: (isAbove, until) => `待办：请在${isAbove ? '上方' : '这里'}批准或拒绝，截止时间 ${until}。`,
    starts: (until) => `它会自动开始${until === null ? '' : `，最迟 ${until}`}。\`pause\` 可以让它停下。`,
    goesOn: '无需处理：这条消息会显示进展。',
    resume: '待办：`resume` 会用剩余的步骤制定一个需要重新投票的新计划。',
    look: '待办：请亲自检查下面的对象。机器人不会再发送任何内容。',
    done: '无需处理。',
    recheckShows: '待办：`recheck` 会显示当前状况，以及现在可以做什么。',
    recheckMakes: '待办：`recheck` 会制定一个新计划。',
    newer: '待办：此消息列中有更新的计划。',
    unchanged: '它没有做任何更改。`recheck` 会制定一个新计划。',
  },

  modal: {
    approve: '批准',
    reject: '拒绝',
    approveTitle: '批准这次修复',
    rejectTitle: '拒绝这次修复',
    cancel: '取消',
    close: '关闭',
    notCounted: '未计入',
    inCluster: (name) => `在集群 ${name} 中`,
    isNew: '无，它是新建的',
    terms: (risk, loss, undo) => `${risk}，${loss}。撤销方法：${undo}`,
    exactly: (writes) => `*将要发送的全部内容（${number(writes)} 次写操作），别无其他*`,
    kept: '它会以你的名义保存在审计记录中。',
    whyApprove: '你为什么批准它？',
    whyReject: '你为什么拒绝它？',
    type: (name) => `请输入 ${name} 以确认`,
  },

  home: {
    title: 'Kubernetes 存储',
    what: '我找出卷、申领或 Pod 卡住的原因，给出证据，并在获得批准后进行修复。',
    begin:
      '*开始使用：* 在我所在的频道中输入 `/k8s-storage diagnose`，或者针对某个对象输入 `/k8s-storage diagnose pvc/data-db-0 -n shop`。`/k8s-storage help` 列出所有的词。',
    thread:
      '*在事故的消息列中：* 请使用按钮、消息快捷方式 “Diagnose storage here”（在此诊断存储），或者提及我并写上 `status`、`recheck`、`evidence` 或 `commands`。',
    approval: '*未经批准，不做任何更改。* 计划会在任何人同意之前列出每一次写操作，每个决定和步骤都保存在审计记录中。',
    clusters: (names) => `*集群*\n${names}`,
    nothingHere: '只有本工作区的成员可以在此看到事故和计划。',
    notRead: '目前无法读取状况。请稍后再打开此标签页。',
    forYou: '*等待你批准*',
    nothingForYou: '没有等待你批准的计划。',
    underWay: '*正在进行*',
    nothingUnderWay: '没有正在执行的计划。',
    waits: (title, risk, votes, until, link) =>
      `• ${link === null ? `“${title}”` : `<${link}|“${title}”>`}（${risk}；${votes}），截止 ${until}`,
    runs: (title, state, link) =>
      `• ${link === null ? `“${title}”` : `<${link}|“${title}”>`} ${describeState(state).zh}`,
    asOf: (when) => `状态截至 ${when}。打开此标签页时会更新。`,
    everybody: '我发布的所有内容，频道中的每个人都能看到。',
  },

  answers: {
    status: (incidents, repairs) =>
      `${number(incidents)} 个未解决的事故，${number(repairs)} 个正在进行或等待中的修复。`,
    paused: (cluster, who, since) => `集群 ${cluster} 中的修复自 ${since} 起被 ${who} 暂停。`,
    recent: (open, ended) =>
      `${open === 0 ? '没有未解决的事故' : `${number(open)} 个未解决的事故`}；最近一周内${ended === 0 ? '没有事故结束' : `结束了 ${number(ended)} 个`}。`,
    recentOpen: (what, suffers, since, place) =>
      `• ${what}${suffers === '' ? '' : ` 受影响：${suffers}。`} 已持续 ${since}（${place}）。`,
    recentEnded: (what, when, lasted, place) =>
      `• :white_check_mark: ${what} 于 ${when} 结束，历时 ${lasted}（${place}）。`,
    recentPlace: (id, scope, cluster, link) =>
      `${link === null ? '' : `<${link}|消息列>，`}${id}，${cluster} 中的 ${scope}`,
    notFound: '目前还没有任何发现。',
    and: (names, left) => `${names.join('、')}${left > 0 ? ` 及另外 ${number(left)} 个` : ''}`,
    audit: (about, events) => `${about} 的审计记录：${events === 0 ? '没有任何记录。' : `${number(events)} 条。`}`,
    noDiagnosis: '还没有诊断结果。',
    read: (when) => `读取于 ${when} 的内容：`,
    notRead: (kind, why) => `未读取：${kind}（${why}）`,
    notTold: (fault, why) => `无法判断：${fault}（${why}）`,
    longCommand: (command) => `命令太长，Slack 中放不下；可用 \`${command}\` 查看。`,
    nothingByHand: '没有需要手动操作的内容。',
    byHand: '在机器人之外手动操作。这些操作不会被检查，也不会进入审计记录：',
    joined: (link) => `这个问题已有消息列，并会在那里重新诊断：<${link}|前往消息列>。`,
    postmortemThere: (link) => `事故复盘已在<${link}|消息列>中。命令行可以用其他时区撰写。`,
    postmortemDone: (link) => `事故复盘已写入<${link}|消息列>。`,
    inBackend: (change) => `在存储后端中：${change}`,
    ofRisk: (what, risk) => `*${what}* ${risk}`,
    incidentLine: (id, scope, cluster, what) => `• ${id}，${cluster} 中的 ${scope}：${what}`,
    seeThread: '见其消息列',
    planLine: (title, id, of) => `• “${title}”（${id}）${state(of)}`,
    auditLine: (seq, when, kind, who) => `${seq}. ${when} ${kind}，由 ${who}`,
    theBot: '机器人',
    knowsOnly: (command) => `此应用只认识 \`${command}\`。`,
  },

  rush: {
    trouble: (n) => `${number(n)} 个有问题`,
    waiting: (n) => `${number(n)} 个正在诊断`,
    resolved: (n) => `${number(n)} 个已解决`,
    effects: (n) => `${number(n)} 个由其中之一引起`,
    well: (n) => `${number(n)} 个存储正常`,
    what: (counts) => `同时出现大量告警：${counts}。`,
    todo: '待办：请从下面的消息列开始。每个问题在诊断之后都会有自己的消息列。',
    line: (scope, cluster, word, link) =>
      `• ${cluster} 中的 ${scope}：${word}${link === null ? '' : `，<${link}|消息列>`}`,
    uncertain: '不确定',
    severity: (severity) => severities[severity],
  },

  stored: {
    none: '没有事故',
    opened: (at) => `始于 ${at}`,
    waiting: (n) => `${number(n)} 个等待批准`,
    lasts: (how, isOver) => (isOver ? `历时 ${how}` : `已持续 ${how}`),
    about: (id, scope, cluster) => `${id}：集群 ${cluster} 中的 ${scope}`,
    labels: {
      state: '状态',
      opened: '开始',
      resolved: '解决',
      thread: '消息列',
      problem: '问题',
      finding: '发现',
      plan: '计划',
      because: '原因',
      next: '后续',
      incident: '事故',
      digest: '摘要',
      risk: '风险',
      requester: '发起者',
      approval: '批准',
      vote: '投票',
      step: (no) => `步骤 ${no}`,
    },
    openedBy: (at, who) => `${at}，由 ${who} 发起`,
    inCluster: (incident, cluster) => `${incident}，集群 ${cluster}`,
    risk: (risk, loss, undo) => `${risks[risk]}，数据${lossWords[loss]}；撤销：${undo}`,
    nobody: '无',
    approval: (given, needed, until, startUntil) =>
      `${given}/${needed}，截止 ${until}${startUntil === null ? '' : `；最迟 ${startUntil} 开始`}`,
    reason: (what, why) => `${what}：${why}`,
  },

  terminal: {
    heading: (object, cluster, now) =>
      `${cluster === null ? '' : `集群 ${cluster}：`}${object === null ? '整个集群的存储' : `${object} 的存储`}，${now}`,
    clear: '没有问题。',
    causes: (causes, effects) =>
      `${number(causes)} 个原因${effects > 0 ? `，${number(effects)} 个由此引起的后果` : ''}。`,
    noAllClear: '没有发现故障，但这并不表示一切正常：见末尾。',
    working: '目前不需要做任何事：Kubernetes 仍在处理。',
    worthKnowing: '没有问题；有值得了解的情况。',
    progress: '进行中',
    info: '供参考',
    cause: '原因',
    effectOf: (no) => `${no} 的后果`,
    title: (no, label, fault, severity, reason) =>
      `${no}. ${label}：${fault}（${severities[severity]}${reason === null ? '' : `，类别 ${reason}`}）`,
    lookAgain: (ms) => `请在 ${duration(ms).zh}后再次检查。`,
    suffering: (who) => `受影响者：${who}`,
    evidence: '证据',
    proven: (says, by) => `${says}（${by}）`,
    evidenceLine: (object, says) => `${object}：${says}`,
    unread: (kind, why) => `无法读取 ${kind}（${why}）：如果能读取，这项发现会更准确`,
    unreadShort: (kind, why) => `无法读取 ${kind}（${why}）`,
    offers: '在 Slack 中获得批准后，机器人可以执行以下操作',
    byHand: '手动操作，最安全的在前',
    offer: (remediation, risk, loss) => `${remediation}（${risks[risk]}，数据${lossWords[loss]}）`,
    does: (what) => `作用：${what}`,
    writes: (what) => `写操作：${what}`,
    undo: (how) => `撤销：${how}`,
    needs: (proof, question) => `需要：${proof}。${question}`,
    blocked: (why) => `受阻：${why}`,
    digest: (digest) => `摘要：${digest}`,
    notExplained: '不正常，且没有发现可以解释',
    notExplainedTitle: '不正常，且没有发现可以解释',
    notDecided: '无法判断',
    notDecidedTitle: '无法判断',
    soNotDecided: (why, faults) => `${why}（因此无法判断：${faults}）`,
    cost: (objects, requests, kib, ms) =>
      `${requests === 0 ? '从文件中' : `通过 ${number(requests)} 次请求`}读取了 ${number(objects)} 个对象（${number(kib)} KiB），用时 ${number(ms)} 毫秒。`,
  },
};
