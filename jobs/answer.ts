import type { Deps } from '../src/deps.ts';
import { absurd } from '../src/domain/errors.ts';
import type { Incident } from '../src/domain/incident.ts';
import { isTerminal } from '../src/domain/plan.ts';
import {
  auditAnswer,
  commandsAnswer,
  evidenceAnswer,
  incidentAnswer,
  incidentsAnswer,
  type Pause,
  sentenceAnswer,
  statusAnswer,
  type Whisper,
} from '../src/slack/views/answers.ts';
import { type Intake, tell } from './tell.ts';

const MOST_INCIDENTS = 200;
const MOST_EVENTS = 200;

/** Answers a question to the person who asked it, and to nobody else. */
export async function answer({ id, request }: Intake<'ask'>, deps: Deps, signal: AbortSignal): Promise<void> {
  await tell(deps, request, await answerOf(request, deps), signal);
  await deps.store.finishRequest(id);
}

async function answerOf(request: Intake<'ask'>['request'], deps: Deps): Promise<Whisper> {
  switch (request.topic) {
    case 'status':
      return request.about === null && request.thread === null
        ? allStatus(deps)
        : ofIncident(request, deps, async (incident) =>
            incidentAnswer(incident, await deps.store.plansOfIncident(incident.id)),
          );
    case 'incidents':
      return incidentsAnswer(await deps.store.listIncidents({ onlyOpen: true, limit: MOST_INCIDENTS }));
    case 'audit':
      return audit(request, deps);
    case 'evidence':
      return ofIncident(request, deps, (incident) => Promise.resolve(evidenceAnswer(incident)));
    case 'commands':
      return ofIncident(request, deps, (incident) => Promise.resolve(commandsAnswer(incident)));
    default:
      return absurd(request.topic);
  }
}

async function allStatus(deps: Deps): Promise<Whisper> {
  const incidents = await deps.store.listIncidents({ onlyOpen: true, limit: MOST_INCIDENTS });
  const plans = (await Promise.all(incidents.map((incident) => deps.store.plansOfIncident(incident.id)))).flat();
  const pauses: Pause[] = [];
  for (const cluster of deps.clusters.keys()) {
    const pause = await deps.store.pausedBy(cluster);
    if (pause) pauses.push({ cluster, ...pause });
  }
  return statusAnswer({ incidents, plans: plans.filter((plan) => !isTerminal(plan.state)), pauses });
}

/** An incident by its id, else the one of the thread in which it was asked. */
async function findIncident(request: Intake<'ask'>['request'], deps: Deps): Promise<Incident | undefined> {
  if (request.about !== null) return deps.store.findIncident(request.about);
  return request.thread === null ? undefined : deps.store.findIncidentOfThread(request.channel, request.thread);
}

async function ofIncident(
  request: Intake<'ask'>['request'],
  deps: Deps,
  view: (incident: Incident) => Promise<Whisper>,
): Promise<Whisper> {
  const incident = await findIncident(request, deps);
  return incident ? view(incident) : sentenceAnswer(`No incident ${request.about ?? 'of this thread'} is known here.`);
}

/** By incident id, or by the object's kind and name as the audit trail writes it. */
async function audit(request: Intake<'ask'>['request'], deps: Deps): Promise<Whisper> {
  const incident = await findIncident(request, deps);
  if (incident)
    return auditAnswer(incident.id, await deps.store.auditOf({ incident: incident.id, limit: MOST_EVENTS }));
  if (request.about === null)
    return sentenceAnswer('Say of what: `/k8s-storage audit KIND/NAME` or `/k8s-storage audit INCIDENT`.');
  return auditAnswer(request.about, await deps.store.auditOf({ object: request.about, limit: MOST_EVENTS }));
}
