import type { Deps } from '../src/deps.ts';
import { whyNotEligible } from '../src/domain/approval.ts';
import { absurd } from '../src/domain/errors.ts';
import { joinedAnswer } from '../src/slack/views/answers.ts';
import { answer } from './answer.ts';
import { decide } from './decide.ts';
import { type Intake, tell, whisper } from './tell.ts';

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
    case 'pause':
    case 'resume':
      return pauseOrResume({ id, request }, deps, signal);
    default:
      return absurd(request);
  }
}

async function openIncident({ id, request }: Intake<'diagnose'>, deps: Deps, signal: AbortSignal): Promise<void> {
  const cluster = request.cluster ?? onlyCluster(deps);
  if (cluster === undefined || !deps.clusters.has(cluster)) {
    await deps.store.finishRequest(id);
    const names = [...deps.clusters.keys()].join(', ');
    const says = cluster === undefined ? 'Say which cluster you mean' : `There is no cluster ${cluster}`;
    return whisper(deps, request, `${says}: add --cluster NAME with one of ${names}.`, signal);
  }
  const { incident, isJoined } = await deps.store.openIncident({
    inboxId: id,
    id: deps.ids.next('inc'),
    cluster,
    scope: request.scope,
    requester: request.user,
    channel: request.channel,
  });
  await deps.queue.enqueue({ kind: 'diagnose', id: incident.id, n: deps.clock.now() });
  if (!isJoined) return;
  if (incident.thread === null) {
    return whisper(deps, request, 'This is being diagnosed already; the answer comes in this channel.', signal);
  }
  const { url } = await deps.chat.identity(signal);
  await tell(deps, request, joinedAnswer(url, incident.channel, incident.thread), signal);
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
  const where = request.cluster === null ? 'all clusters' : `cluster ${request.cluster}`;
  if (request.cluster !== null && !deps.clusters.has(request.cluster)) {
    await deps.store.finishRequest(id);
    return whisper(deps, request, `There is no cluster ${request.cluster}.`, signal);
  }
  if (request.kind === 'pause') {
    await deps.store.pause(id, request.cluster, request.user);
    return whisper(
      deps,
      request,
      `Paused for ${where}: nothing is started, and running plans stop before their next write. Diagnosis goes on. /k8s-storage resume ends it.`,
      signal,
    );
  }
  await deps.store.resume(id, request.cluster, request.user);
  return whisper(
    deps,
    request,
    `Resumed for ${where}. Halted plans do not go on by themselves: what is left of them becomes new plans that need new votes.`,
    signal,
  );
}
