import type { Deps } from '../src/deps.ts';
import { whyNotEligible } from '../src/domain/approval.ts';
import { absurd } from '../src/domain/errors.ts';
import { scopeInWords } from '../src/domain/scope.ts';
import { duration, en, type Text, zh } from '../src/domain/text.ts';
import { joinedAnswer } from '../src/slack/views/answers.ts';
import { answer } from './answer.ts';
import { decide } from './decide.ts';
import { givePostmortem } from './postmortem.ts';
import { type Intake, languageFor, tell, whisper } from './tell.ts';

/**
 * Does what one inbox row asks for. Running it twice, also at the same time, does it once: each use case marks the row
 * in the transaction of its own change.
 */
export async function intake(inboxId: string, deps: Deps, signal: AbortSignal): Promise<void> {
  const row = await deps.store.findRequest(inboxId);
  if (!row || row.isDone) return;
  const { id, request } = row;
  switch (request.kind) {
    case 'diagnose':
      return openIncident({ id, request }, deps, signal);
    case 'recheck':
      await deps.store.askRecheck(id, request.incident, request.user);
      return deps.queue.enqueue({ kind: 'diagnose', id: request.incident, n: deps.clock.now() });
    case 'vote':
      return decide({ id, request }, deps, signal);
    case 'ask':
      return answer({ id, request }, deps, signal);
    case 'postmortem':
      return givePostmortem({ id, request }, deps, signal);
    case 'pause':
    case 'resume':
      return pauseOrResume({ id, request }, deps, signal);
    case 'mute':
    case 'unmute':
      return muteOrUnmute({ id, request }, deps, signal);
    default:
      return absurd(request);
  }
}

async function openIncident({ id, request }: Intake<'diagnose'>, deps: Deps, signal: AbortSignal): Promise<void> {
  const cluster = request.cluster ?? onlyCluster(deps);
  if (cluster === undefined || !deps.clusters.has(cluster)) {
    await deps.store.finishRequest(id);
    const names = [...deps.clusters.keys()].join(', ');
    const says: Text =
      cluster === undefined
        ? {
            en: en`Say which cluster you mean: add --cluster NAME with one of ${names}.`,
            zh: zh`请说明是哪个集群：加上 --cluster NAME，可选的有 ${names}。`,
          }
        : {
            en: en`There is no cluster ${cluster}: add --cluster NAME with one of ${names}.`,
            zh: zh`没有集群 ${cluster}：请加上 --cluster NAME，可选的有 ${names}。`,
          };
    return whisper(deps, request, says, signal);
  }
  const { incident, isJoined } = await deps.store.openIncident({
    inboxId: id,
    id: deps.ids.next('inc'),
    cluster,
    scope: request.scope,
    requester: request.user,
    channel: request.channel,
    language: await languageFor(request.user, deps, signal),
  });
  await deps.queue.enqueue({ kind: 'diagnose', id: incident.id, n: deps.clock.now() });
  if (!isJoined) return;
  if (incident.thread === null) {
    return whisper(
      deps,
      request,
      {
        en: 'This is being diagnosed already; the answer comes in this channel.',
        zh: '这里正在诊断；结果将发到此频道。',
      },
      signal,
    );
  }
  const { url } = await deps.chat.identity(signal);
  const { thread } = incident;
  await tell(deps, request, (t) => joinedAnswer(url, incident.channel, thread, t), signal);
}

function onlyCluster(deps: Deps): string | undefined {
  return deps.clusters.size === 1 ? [...deps.clusters.keys()][0] : undefined;
}

async function pauseOrResume(
  { id, request }: Intake<'pause' | 'resume'>,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const [person, { teamId }] = await Promise.all([deps.chat.person(request.user, signal), deps.chat.identity(signal)]);
  const mayNot = whyNotEligible(person, teamId);
  if (mayNot !== undefined) {
    await deps.store.finishRequest(id);
    return whisper(deps, request, mayNot, signal);
  }
  const where: Text =
    request.cluster === null
      ? { en: 'all clusters', zh: '所有集群' }
      : { en: en`cluster ${request.cluster}`, zh: zh`集群 ${request.cluster}` };
  if (request.cluster !== null && !deps.clusters.has(request.cluster)) {
    await deps.store.finishRequest(id);
    return whisper(
      deps,
      request,
      { en: en`There is no cluster ${request.cluster}.`, zh: zh`没有集群 ${request.cluster}。` },
      signal,
    );
  }
  if (request.kind === 'pause') {
    await deps.store.pause(id, request.cluster, request.user);
    return whisper(
      deps,
      request,
      {
        en: en`Paused for ${where}: nothing is started, and running plans stop before their next write. Diagnosis goes on. /k8s-storage resume ends it.`,
        zh: zh`已为${where}暂停：不会开始任何计划，正在执行的计划会在下一次写操作之前停下。诊断继续进行。/k8s-storage resume 结束暂停。`,
      },
      signal,
    );
  }
  await deps.store.resume(id, request.cluster, request.user);
  return whisper(
    deps,
    request,
    {
      en: en`Resumed for ${where}. Halted plans do not go on by themselves: what is left of them becomes new plans that need new votes.`,
      zh: zh`已为${where}恢复。已中止的计划不会自行继续：其剩余部分会成为需要重新投票的新计划。`,
    },
    signal,
  );
}

async function muteOrUnmute(
  { id, request }: Intake<'mute' | 'unmute'>,
  deps: Deps,
  signal: AbortSignal,
): Promise<void> {
  const [person, { teamId }] = await Promise.all([deps.chat.person(request.user, signal), deps.chat.identity(signal)]);
  const mayNot = whyNotEligible(person, teamId);
  const cluster = request.cluster ?? onlyCluster(deps);
  if (mayNot !== undefined || cluster === undefined || !deps.clusters.has(cluster)) {
    await deps.store.finishRequest(id);
    return whisper(deps, request, mayNot ?? { en: 'There is no such cluster.', zh: '没有这个集群。' }, signal);
  }
  const about = scopeInWords(request.scope);
  const input = { inboxId: id, cluster, scope: request.scope, actor: request.user };
  if (request.kind === 'mute') {
    await deps.store.mute({ ...input, forMs: request.forMs });
    const says: Text = {
      en: en`Muted ${about} for ${duration(request.forMs)}: alerts about it begin no thread. Threads that stand are kept true. /k8s-storage unmute ends it.`,
      zh: zh`已静音 ${about}，为期 ${duration(request.forMs)}：它的告警不再新建消息列，已有的消息列仍会更新。用 /k8s-storage unmute 结束。`,
    };
    return whisper(deps, request, says, signal);
  }
  const { wasMuted } = await deps.store.unmute(input);
  const says: Text = wasMuted
    ? { en: en`Alerts about ${about} begin threads again.`, zh: zh`${about} 的告警将重新新建消息列。` }
    : { en: en`${about} was not muted.`, zh: zh`${about} 没有被静音。` };
  return whisper(deps, request, says, signal);
}
