import { v5 as uuidv5 } from 'uuid';
import { requirementOf, whyNotEligible } from './domain/approval.ts';
import { type Cluster, couldNotRead } from './domain/cluster.ts';
import { absurd, Refused, saysOf, Transient, Uncertain } from './domain/errors.ts';
import type { JsonObject } from './domain/objects.ts';
import type { Plan, Step } from './domain/plan.ts';
import type { Remediation } from './domain/remediation.ts';
import { digestOf } from './domain/report.ts';
import { clauses, en, type Text, textIn, zh } from './domain/text.ts';
import { effectOf, fromPlanned, toPlanned, type Write } from './domain/write.ts';
import { type FaultHook, noFaults } from './fault-points.ts';
import type {
  BackendWriter,
  Chat,
  Claim,
  Clock,
  ClusterAccess,
  ClusterReader,
  ClusterWriter,
  Fence,
  Log,
  Store,
  WriteResult,
} from './ports.ts';

/** The part of the store that an execution needs. */
export type ExecutionStore = Pick<
  Store,
  | 'findPlan'
  | 'endUnbegun'
  | 'claim'
  | 'renew'
  | 'intent'
  | 'outcome'
  | 'beginVerifying'
  | 'finish'
  | 'release'
  | 'goalHeld'
  | 'pausedBy'
>;

export interface RemediateDeps {
  readonly store: ExecutionStore;
  readonly chat: Pick<Chat, 'identity' | 'personNow'>;
  readonly clusters: ReadonlyMap<string, ClusterAccess>;
  readonly remediations: readonly Remediation[];
  readonly clock: Clock;
  readonly log: Log;
  /** Who holds the lease: one per process. */
  readonly owner: string;
  readonly settings: {
    readonly leaseMs: number;
    /** How long the goal must hold before a plan counts as done. */
    readonly settleMs: number;
    /** Pause between two looks at the cluster. */
    readonly pollMs: number;
  };
  /** Resolves after that time, or rejects when the signal aborts. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  readonly fault?: FaultHook;
}

/** How often one write is sent at most, each time after its own read and its own committed intent. */
const MOST_ATTEMPTS = 3;
const AUDIT_NAMESPACE = '6f0f6b0e-6a5b-4f8b-9a53-6d3f9f1f7c11';

/**
 * Carries out one approved plan, exactly as approved and once. Safe to be called at any time, for any plan, by several
 * processes at once: who does not get the claim does nothing.
 *
 * The protocol of each write: read the live object, commit the intent, send one conditional request, conclude from the
 * reply or from another read, commit the outcome. A crash anywhere leaves an INTENT that the next owner reads before it
 * does anything else. What cannot be concluded is NEEDS_ATTENTION and is never sent again blindly.
 */
export async function remediate(planId: string, deps: RemediateDeps, signal: AbortSignal): Promise<void> {
  const plan = await deps.store.findPlan(planId);
  if (!plan) return;
  if (plan.state === 'APPROVED' && !(await mayStart(plan, deps, signal))) return;
  const fault = deps.fault ?? noFaults;
  fault('executor.before_claim');
  const claim = await deps.store.claim(planId, deps.owner, deps.settings.leaseMs);
  if (!claim) return;
  fault('executor.after_claim');
  const run = startRun(claim, deps, signal, fault);
  if (!run) {
    await deps.store.finish(fenceOf(claim, deps), 'NEEDS_ATTENTION', {
      en: en`this process has no access to act on cluster ${claim.plan.cluster}, or does not know ${claim.plan.remediation}`,
      zh: zh`此进程没有对集群 ${claim.plan.cluster} 执行操作的权限，或者不认识 ${claim.plan.remediation}`,
    });
    return;
  }
  try {
    await carryOut(run);
  } catch (error) {
    await onError(error, run);
  }
}

/** Everything one execution needs. */
interface Run {
  readonly plan: Plan;
  readonly claim: Claim;
  readonly fence: Fence;
  readonly remediation: Remediation;
  readonly reader: ClusterReader;
  readonly writer: ClusterWriter;
  /** Absent where the plan does not need it. */
  readonly backend: BackendWriter | undefined;
  readonly deps: RemediateDeps;
  readonly signal: AbortSignal;
  readonly fault: FaultHook;
}

function startRun(claim: Claim, deps: RemediateDeps, signal: AbortSignal, fault: FaultHook): Run | undefined {
  const act = deps.clusters.get(claim.plan.cluster)?.act;
  const remediation = deps.remediations.find((candidate) => candidate.id === claim.plan.remediation);
  if (!act || !remediation) return undefined;
  if (!act.backend && claim.plan.writes.some(({ resource }) => resource === 'backendvolumes')) return undefined;
  return {
    plan: claim.plan,
    claim,
    fence: fenceOf(claim, deps),
    remediation,
    reader: act.reader,
    writer: act.writer,
    backend: act.backend,
    deps,
    signal,
    fault,
  };
}

function fenceOf(claim: Claim, deps: RemediateDeps): Fence {
  return { plan: claim.plan.id, epoch: claim.epoch, owner: deps.owner };
}

/** Eligibility is checked a last time when the plan starts; who cannot be read is not eligible, so it waits. */
async function mayStart(plan: Plan, deps: RemediateDeps, signal: AbortSignal): Promise<boolean> {
  if (await deps.store.pausedBy(plan.cluster)) return false;
  const { teamId } = await deps.chat.identity(signal);
  const approvers = plan.votes.filter((vote) => vote.decision === 'approve' && vote.digest === plan.digest);
  let eligible = 0;
  for (const vote of approvers) {
    const person = await deps.chat.personNow(vote.user, signal);
    if ('unreadable' in person)
      throw new Transient({
        en: en`could not check that ${vote.user} may still approve: ${person.unreadable}`,
        zh: zh`无法确认 ${vote.user} 是否仍可批准：${person.unreadable}`,
      });
    if (whyNotEligible(person, teamId) === undefined) eligible += 1;
  }
  if (eligible >= requirementOf(plan.risk).people) return true;
  await deps.store.endUnbegun(plan.id, 'REJECTED', {
    en: en`somebody who approved it may not approve any more`,
    zh: zh`批准过它的某个人已不再有批准的权限`,
  });
  return false;
}

async function carryOut(run: Run): Promise<void> {
  if (run.plan.state !== 'VERIFYING') {
    await checkCluster(run);
    const isBegun = run.plan.steps.some((step) => step.state !== 'PENDING');
    // The rest of a halted plan cannot be planned anew, because its first steps are done; each write checks its own object.
    const isRest = run.plan.continues !== null;
    if (!isBegun && !isRest && !(await isStillThePlan(run))) return;
    if (!isBegun && !(await mayDoAll(run))) return;
    for (const step of run.plan.steps) {
      if (!(await doStep(step, run))) return;
    }
    await run.deps.store.beginVerifying(run.fence, run.deps.settings.leaseMs);
  }
  await verify(run);
}

/** Credentials of one cluster and a plan of another must never meet: compared with the client that will write. */
async function checkCluster(run: Run): Promise<void> {
  const { uid } = await run.reader.identity(run.signal);
  if (uid !== run.plan.clusterUid) {
    throw new Refused({
      en: en`the credentials lead to cluster ${uid ?? 'unknown'}, the plan is for ${run.plan.clusterUid}`,
      zh: zh`凭据指向集群 ${uid ?? 'unknown'}，而计划针对的是 ${run.plan.clusterUid}`,
    });
  }
}

/** Plans anew from the live cluster: what was approved must be exactly what would be planned now. */
async function isStillThePlan(run: Run): Promise<boolean> {
  const { plan, remediation } = run;
  let reasons: readonly Text[];
  try {
    const cluster = await readCluster(run);
    reasons = remediation.preflight(plan.params, cluster);
    if (reasons.length === 0) {
      const writes = remediation.plan(plan.params, cluster).map(toPlanned);
      const digest = digestOf({
        cluster: plan.clusterUid,
        remediation: plan.remediation,
        params: plan.params,
        plan: writes,
      });
      if (digest === plan.digest) return true;
      reasons = [
        {
          en: 'the cluster changed after the approval, so the plan would be another one now',
          zh: '集群在批准之后发生了变化，现在的计划会与批准的不同',
        },
      ];
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    reasons = [error.says];
  }
  const why = clauses(reasons);
  await finish(run, 'SUPERSEDED', { en: en`Nothing was changed: ${why}.`, zh: zh`没有做任何更改：${why}。` });
  return false;
}

/** How an API server says that the account itself lacks the right, whatever the object is like. */
const LACKS_RIGHT = /\bcannot (create|patch|delete) resource /;

/**
 * Before the first write every right that a later one needs is asked for, as a dry run: a role that lacks the third step's
 * must not be noticed after the second. Whatever else speaks against a later step now is no reason, its turn has not come.
 */
async function mayDoAll(run: Run): Promise<boolean> {
  const [first, ...later] = run.plan.steps;
  const asked = new Set(first ? [rightOf(first)] : []);
  for (const step of later) {
    if (asked.has(rightOf(step))) continue;
    asked.add(rightOf(step));
    const write = fromPlanned(step.write);
    const auditId = uuidv5(`${run.plan.id}/${step.no}/${run.claim.epoch}/right`, AUDIT_NAMESPACE);
    const result = await writerFor(write, run).write(write, { auditId, dryRun: true }, run.signal);
    if (result.kind !== 'forbidden' || !LACKS_RIGHT.test(result.says.en)) continue;
    await finishUntouched(run, {
      en: en`step ${step.no} would be forbidden: ${result.says}`,
      zh: zh`步骤 ${step.no} 会被禁止：${result.says}`,
    });
    return false;
  }
  return true;
}

/** The subresource stands in `resource`. */
function rightOf({ write }: Step): string {
  return `${write.verb} ${write.resource}`;
}

/** A snapshot under the acting credentials. A kind that could not be read is no ground for a decision. */
async function readCluster(run: Run): Promise<Cluster> {
  const { remediation, plan } = run;
  const { cluster } = await run.reader.read(
    { scope: remediation.scope(plan.params), needs: remediation.needs, always: remediation.always },
    run.signal,
  );
  const unread = remediation.needs.find((resource) => !cluster.isRead(resource));
  if (unread === undefined) return cluster;
  throw new Transient(couldNotRead(unread, cluster.whyUnread(unread)));
}

/** Brings one step to its end. False when the plan ended with it. */
async function doStep(step: Step, run: Run): Promise<boolean> {
  if (step.state === 'DONE' || step.state === 'NOOP') return true;
  const write = fromPlanned(step.write);
  let wasSent = step.state === 'INTENT' || step.state === 'UNKNOWN';
  for (let attempt = step.attempt; ; attempt += 1) {
    const live = await run.reader.get(write.resource, write.namespace, write.name, run.signal);
    switch (effectOf(write, live)) {
      case 'applied':
        await outcome(
          run,
          step.no,
          wasSent ? 'DONE' : 'NOOP',
          wasSent ? { en: 'the effect is there', zh: '效果已经出现' } : { en: 'it was so already', zh: '原本就是如此' },
          live,
        );
        return wasSettled(step, run);
      case 'other':
        return endWithoutTarget(step, write, wasSent, run);
      case 'open':
        break;
      default:
        throw new Error('unreachable');
    }
    if (attempt >= MOST_ATTEMPTS) {
      await outcome(
        run,
        step.no,
        'UNKNOWN',
        {
          en: en`sent ${attempt} times, and the effect did not show`,
          zh: zh`已发送 ${attempt} 次，但没有看到效果`,
        },
        live,
      );
      await finish(run, 'NEEDS_ATTENTION', {
        en: en`Step ${step.no} was sent ${attempt} times and its effect did not show. A person must look.`,
        zh: zh`步骤 ${step.no} 已发送 ${attempt} 次，但没有看到效果。必须由人工检查。`,
      });
      return false;
    }
    const refusal = await dryRun(step, write, run);
    if (refusal !== undefined) return endRefused(step, refusal, run);
    const auditId = uuidv5(`${run.plan.id}/${step.no}/${run.claim.epoch}/${attempt}`, AUDIT_NAMESPACE);
    if (!(await intent(run, step.no, auditId, live))) return false;
    const result = await send(write, auditId, run);
    wasSent = true;
    switch (result.kind) {
      case 'applied':
        await outcome(run, step.no, 'DONE', { en: 'applied', zh: '已应用' }, result.object);
        return wasSettled(step, run);
      case 'forbidden':
        return endRefused(
          step,
          {
            en: en`the API server refused it: ${result.says}`,
            zh: zh`API 服务器拒绝了它：${result.says}`,
          },
          run,
        );
      case 'conflict':
      case 'invalid':
      case 'notFound':
        // Refused as a whole, but an earlier attempt may have had its effect: only the object tells.
        if (!(await hasEffectNow(write, run)))
          return endRefused(
            step,
            {
              en: en`the object changed in the meantime: ${result.says}`,
              zh: zh`对象在此期间发生了变化：${result.says}`,
            },
            run,
          );
        break;
      case 'unknown':
        run.deps.log.warn('outcome of a write is not known, reading', {
          plan: run.plan.id,
          step: step.no,
          says: result.says,
        });
        await run.deps.sleep(run.deps.settings.pollMs, run.signal);
        break;
      default:
        absurd(result);
    }
  }
}

/** What stands in the backend is changed there, everything else by the API server. */
function writerFor(write: Write, run: Run): ClusterWriter | BackendWriter {
  if (write.resource !== 'backendvolumes') return run.writer;
  if (!run.backend)
    throw new Refused({
      en: en`no storage backend is connected that could be changed`,
      zh: zh`没有连接可以更改的存储后端`,
    });
  return run.backend;
}

async function hasEffectNow(write: Write, run: Run): Promise<boolean> {
  return effectOf(write, await run.reader.get(write.resource, write.namespace, write.name, run.signal)) === 'applied';
}

/** Asks the API server to check the write without storing it. Undefined when nothing speaks against it. */
async function dryRun(step: Step, write: Write, run: Run): Promise<Text | undefined> {
  const auditId = uuidv5(`${run.plan.id}/${step.no}/${run.claim.epoch}/dry-run`, AUDIT_NAMESPACE);
  const result = await writerFor(write, run).write(write, { auditId, dryRun: true }, run.signal);
  switch (result.kind) {
    case 'applied':
      return undefined;
    case 'unknown':
      throw new Transient({
        en: en`the API server did not answer the dry run: ${result.says}`,
        zh: zh`API 服务器没有答复试运行：${result.says}`,
      });
    case 'conflict':
    case 'invalid':
    case 'notFound':
    case 'forbidden':
      // A webhook with side effects cannot be dry-run; that says nothing about the write itself.
      return result.says.en.includes('does not support dry run')
        ? undefined
        : {
            en: en`the API server would refuse it: ${result.says}`,
            zh: zh`API 服务器会拒绝它：${result.says}`,
          };
    default:
      return absurd(result);
  }
}

/** Commits the intent; without that commit nothing is sent. False when the plan was halted instead. */
async function intent(run: Run, step: number, auditId: string, live: JsonObject | undefined): Promise<boolean> {
  try {
    await run.deps.store.intent(run.fence, step, { auditId, before: live ?? null, leaseMs: run.deps.settings.leaseMs });
  } catch (error) {
    const pause = error instanceof Refused ? await run.deps.store.pausedBy(run.plan.cluster) : undefined;
    if (!pause) throw error;
    await finish(run, 'HALTED', {
      en: en`Halted before step ${step}: paused by ${pause.actor}. What is left becomes a new plan with new votes.`,
      zh: zh`在步骤 ${step} 之前中止：已被 ${pause.actor} 暂停。剩余部分会成为需要重新投票的新计划。`,
    });
    return false;
  }
  run.fault('executor.after_intent');
  return true;
}

async function send(write: Write, auditId: string, run: Run): Promise<WriteResult> {
  const reply = writerFor(write, run).write(write, { auditId, dryRun: false }, run.signal);
  run.fault('executor.request_sent');
  const result = await reply;
  run.fault('executor.after_reply');
  return result;
}

async function outcome(
  run: Run,
  step: number,
  state: 'DONE' | 'NOOP' | 'REFUSED' | 'UNKNOWN',
  result: Text,
  after: JsonObject | undefined,
) {
  await run.deps.store.outcome(run.fence, step, {
    state,
    result,
    after: after ?? null,
    leaseMs: run.deps.settings.leaseMs,
  });
  run.fault('executor.after_outcome');
}

/** The planned object is gone or another. What was sent before can then not be told from the object any more. */
async function endWithoutTarget(step: Step, write: Write, wasSent: boolean, run: Run): Promise<boolean> {
  const says = {
    en: en`${write.resource} ${write.name} is not the object of the plan any more`,
    zh: zh`${write.resource} ${write.name} 已不是计划所针对的对象`,
  };
  if (!wasSent) return endRefused(step, says, run);
  await outcome(run, step.no, 'UNKNOWN', says, undefined);
  await finish(run, 'NEEDS_ATTENTION', {
    en: en`Step ${step.no} was sent, and ${says}. A person must look.`,
    zh: zh`步骤 ${step.no} 已发送，而 ${says}。必须由人工检查。`,
  });
  return false;
}

/** A definite no: nothing happened in this step. After a step that did happen, a person must look at what is left. */
async function endRefused(step: Step, says: Text, run: Run): Promise<boolean> {
  await outcome(run, step.no, 'REFUSED', says, undefined);
  if (step.no === 1) await finishUntouched(run, says);
  else
    await finish(run, 'NEEDS_ATTENTION', {
      en: en`Step ${step.no} was refused after earlier steps were done: ${says}.`,
      zh: zh`步骤 ${step.no} 在之前的步骤完成后被拒绝：${says}。`,
    });
  return false;
}

/** This plan changed nothing. When it is the rest of a halted one, its first part did, and a person must look at that. */
async function finishUntouched(run: Run, says: Text): Promise<void> {
  if (run.plan.continues === null)
    await finish(run, 'FAILED', {
      en: en`Nothing was changed: ${says}.`,
      zh: zh`没有做任何更改：${says}。`,
    });
  else
    await finish(run, 'NEEDS_ATTENTION', {
      en: en`The rest of plan ${run.plan.continues} was not done: ${says}.`,
      zh: zh`计划 ${run.plan.continues} 的剩余部分没有执行：${says}。`,
    });
}

/** Waits for what must have happened before the next write. */
async function wasSettled(step: Step, run: Run): Promise<boolean> {
  const isLast = step.no === run.plan.steps.length;
  if (isLast) return true;
  const earlier = await stepsBefore(run);
  const isOver = await watch(run, (cluster) =>
    Promise.resolve(run.remediation.settled(earlier + step.no, run.plan.params, cluster)),
  );
  if (!isOver)
    await finish(run, 'NEEDS_ATTENTION', {
      en: en`Step ${step.no} is done, but what must follow did not happen in ${run.remediation.withinSeconds} s.`,
      zh: zh`步骤 ${step.no} 已完成，但随后应有的结果在 ${run.remediation.withinSeconds} 秒内没有出现。`,
    });
  return isOver;
}

/** How many steps of the whole stand before the first one of this plan; none unless it is the rest of a halted plan. */
async function stepsBefore({ plan, deps }: Run): Promise<number> {
  let whole = plan;
  while (whole.continues !== null) {
    const halted = await deps.store.findPlan(whole.continues);
    if (!halted)
      throw new Refused({
        en: en`plan ${whole.continues}, which plan ${whole.id} continues, is not known`,
        zh: zh`没有计划 ${whole.id} 所延续的计划 ${whole.continues}`,
      });
    whole = halted;
  }
  return whole.steps.length - plan.steps.length;
}

async function verify(run: Run): Promise<void> {
  const { settleMs } = run.deps.settings;
  const isReached = await watch(
    run,
    async (cluster) => {
      const holds = run.remediation.verify(run.plan.params, cluster) === 'done';
      const heldMs = await run.deps.store.goalHeld(run.fence, holds);
      return holds && heldMs >= settleMs;
    },
    settleMs,
  );
  if (isReached)
    await finish(run, 'SUCCEEDED', {
      en: en`Done, and verified on the live cluster.`,
      zh: zh`已完成，并已在实际集群上验证。`,
    });
  else
    await finish(run, 'NEEDS_ATTENTION', {
      en: en`All steps are done, but the goal was not seen to hold within ${run.remediation.withinSeconds} s.`,
      zh: zh`所有步骤都已完成，但在 ${run.remediation.withinSeconds} 秒内没有看到目标稳定达成。`,
    });
}

/** Looks at the cluster until the condition holds or the remediation's time is over, keeping the lease. */
async function watch(run: Run, condition: (cluster: Cluster) => Promise<boolean>, extraMs = 0): Promise<boolean> {
  const { deps, signal } = run;
  const until = deps.clock.now() + run.remediation.withinSeconds * 1000 + extraMs;
  for (;;) {
    try {
      if (await condition(await readCluster(run))) return true;
    } catch (error) {
      if (!(error instanceof Transient)) throw error;
      deps.log.info('could not look at the cluster, trying again', { plan: run.plan.id, reason: error.message });
    }
    if (deps.clock.now() >= until) return false;
    await deps.store.renew(run.fence, deps.settings.leaseMs);
    await deps.sleep(deps.settings.pollMs, signal);
  }
}

async function finish(run: Run, to: Parameters<Store['finish']>[1], says: Text): Promise<void> {
  run.fault('executor.before_finish');
  await run.deps.store.finish(run.fence, to, says);
  run.fault('executor.after_finish');
}

/**
 * The one place that maps errors: a refusal before anything was sent fails the plan, a lost lease leaves it to its new
 * owner, a transient fault gives the lease back for the sweep, and everything that leaves doubt needs a person.
 */
async function onError(error: unknown, run: Run): Promise<void> {
  const { deps, plan, fence } = run;
  const says = saysOf(error);
  const reason = textIn(says, 'en');
  const now = await deps.store.findPlan(plan.id);
  if (!now || now.epoch !== fence.epoch || (now.state !== 'EXECUTING' && now.state !== 'VERIFYING')) {
    deps.log.info('lease lost, another owner goes on', { plan: plan.id, says: reason });
    return;
  }
  const isUntouched = now.steps.every((step) => step.state === 'PENDING');
  if (error instanceof Refused && isUntouched) {
    await finish(run, 'FAILED', {
      en: en`Nothing was changed: ${says}.`,
      zh: zh`没有做任何更改：${says}。`,
    });
    return;
  }
  if (
    error instanceof Transient &&
    isUntouched &&
    now.executeBy !== null &&
    Date.parse(now.executeBy) <= deps.clock.now()
  ) {
    await finishUntouched(run, {
      en: en`it could not be started in time (${says})`,
      zh: zh`它未能按时开始（${says}）`,
    });
    return;
  }
  if (error instanceof Transient || error instanceof Uncertain || run.signal.aborted) {
    deps.log.warn('execution interrupted, the sweep takes it up again', { plan: plan.id, says: reason });
    await deps.store.release(fence);
    return;
  }
  deps.log.error('execution stopped by an unexpected fault', { plan: plan.id, says: reason });
  await finish(run, 'NEEDS_ATTENTION', {
    en: en`Stopped by an unexpected fault: ${says}. A person must look.`,
    zh: zh`因意外故障而停止：${says}。必须由人工检查。`,
  });
}
