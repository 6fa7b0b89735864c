import type { Deps } from '../src/deps.ts';
import { absurd } from '../src/domain/errors.ts';
import { type Incident, RECENT_MS } from '../src/domain/incident.ts';
import { isTerminal } from '../src/domain/plan.ts';
import { incidentIn, planIn, recentIn } from '../src/domain/spoken.ts';
import { en, type Text, textIn, zh } from '../src/domain/text.ts';
import type { Locale } from '../src/locales/en.ts';
import {
  auditAnswer,
  commandsAnswer,
  evidenceAnswer,
  incidentAnswer,
  incidentsAnswer,
  MOST_RECENT,
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
  await tell(deps, request, await answerOf(request, deps, signal), signal);
  await deps.store.finishRequest(id);
}

/** What is said, in the language of whoever reads it. */
type Said = (t: Locale) => Whisper;

async function answerOf(request: Intake<'ask'>['request'], deps: Deps, signal: AbortSignal): Promise<Said> {
  switch (request.topic) {
    case 'status':
      return request.about === null && request.thread === null
        ? allStatus(deps)
        : ofIncident(request, deps, async (incident) => {
            const plans = await deps.store.plansOfIncident(incident.id);
            return (t) =>
              incidentAnswer(
                incidentIn(incident, t.language),
                plans.map((plan) => planIn(plan, t.language)),
                t,
              );
          });
    case 'incidents': {
      const [recent, { url }] = await Promise.all([
        deps.store.listRecent({ withinMs: RECENT_MS, limit: MOST_RECENT }),
        deps.chat.identity(signal),
      ]);
      const now = deps.clock.now();
      return (t) => {
        const incidents = recent.incidents.map((one) => recentIn(one, t.language));
        return incidentsAnswer({ ...recent, incidents }, url, now, t);
      };
    }
    case 'audit':
      return audit(request, deps);
    case 'evidence':
      return ofIncident(request, deps, (incident) => (t) => evidenceAnswer(incidentIn(incident, t.language), t));
    case 'commands':
      return ofIncident(request, deps, (incident) => (t) => commandsAnswer(incidentIn(incident, t.language), t));
    default:
      return absurd(request.topic);
  }
}

async function allStatus(deps: Deps): Promise<Said> {
  const incidents = await deps.store.listIncidents({ onlyOpen: true, limit: MOST_INCIDENTS });
  const plans = (await Promise.all(incidents.map((incident) => deps.store.plansOfIncident(incident.id)))).flat();
  const pauses: Pause[] = [];
  for (const cluster of deps.clusters.keys()) {
    const pause = await deps.store.pausedBy(cluster);
    if (pause) pauses.push({ cluster, ...pause });
  }
  const running = plans.filter((plan) => !isTerminal(plan.state));
  return (t) =>
    statusAnswer(
      {
        incidents: incidents.map((incident) => incidentIn(incident, t.language)),
        plans: running.map((plan) => planIn(plan, t.language)),
        pauses,
      },
      t,
    );
}

/** An incident by its id, else the one of the thread in which it was asked. */
async function findIncident(request: Intake<'ask'>['request'], deps: Deps): Promise<Incident | undefined> {
  if (request.about !== null) return deps.store.findIncident(request.about);
  return request.thread === null ? undefined : deps.store.findIncidentOfThread(request.channel, request.thread);
}

async function ofIncident(
  request: Intake<'ask'>['request'],
  deps: Deps,
  view: (incident: Incident) => Said | Promise<Said>,
): Promise<Said> {
  const incident = await findIncident(request, deps);
  if (incident) return view(incident);
  return sentence(
    request.about === null
      ? { en: 'No incident of this thread is known here.', zh: '这里没有属于此消息列的事故。' }
      : { en: en`No incident ${request.about} is known here.`, zh: zh`这里没有事故 ${request.about}。` },
  );
}

/** By incident id, or by the object's kind and name as the audit trail writes it. */
async function audit(request: Intake<'ask'>['request'], deps: Deps): Promise<Said> {
  const { about } = request;
  const incident = await findIncident(request, deps);
  if (incident) {
    const events = await deps.store.auditOf({ incident: incident.id, limit: MOST_EVENTS });
    return (t) => auditAnswer(incident.id, events, t);
  }
  if (about === null) {
    return sentence({
      en: 'Say of what: `/k8s-storage audit KIND/NAME` or `/k8s-storage audit INCIDENT`.',
      zh: '请说明要查看什么：`/k8s-storage audit KIND/NAME` 或 `/k8s-storage audit INCIDENT`。',
    });
  }
  const events = await deps.store.auditOf({ object: about, limit: MOST_EVENTS });
  return (t) => auditAnswer(about, events, t);
}

function sentence(text: Text): Said {
  return (t) => sentenceAnswer(textIn(text, t.language), t);
}
