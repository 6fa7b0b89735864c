import type { Locale } from '../../locales/en.ts';
import type { ChatMessage, RushIncident } from '../../ports.ts';
import { type Mrkdwn, pack, section, within } from './blocks.ts';
import { threadLink } from './link.ts';
import { esc } from './text.ts';
import { metadataOf } from './words.ts';

/** One message for many incidents at once: what they are about, and where each has its thread once it is diagnosed. */
export function rushMessage(incidents: readonly RushIncident[], workspaceUrl: string, t: Locale): ChatMessage {
  const waiting = incidents.filter(({ state }) => state === 'open');
  const troubles = incidents.filter((one) => one.state === 'diagnosed' && !one.isSilent);
  const resolved = incidents.filter((one) => one.state === 'resolved' && !one.isSilent);
  const joined = incidents.filter(({ state }) => state === 'joined').length;
  const well = incidents.filter((one) => one.state === 'resolved' && one.isSilent).length;
  const counts = [
    ...(troubles.length === 0 ? [] : [t.rush.trouble(troubles.length)]),
    ...(waiting.length === 0 ? [] : [t.rush.waiting(waiting.length)]),
    ...(resolved.length === 0 ? [] : [t.rush.resolved(resolved.length)]),
    ...(joined === 0 ? [] : [t.rush.effects(joined)]),
    ...(well === 0 ? [] : [t.rush.well(well)]),
  ];
  const what = t.rush.what(t.list(counts));
  const { todo } = t.rush;
  const lines = [...troubles, ...waiting, ...resolved].map((one) => lineOf(one, workspaceUrl, t));
  return {
    text: `${what}\n${todo}`,
    blocks: within(
      [
        section(`*${what}*\n${todo}`),
        ...pack(lines, 6, t, t.where.alsoListedBy('/k8s-storage incidents')).map(section),
      ],
      t,
    ),
    metadata: metadataOf('incident', { state: waiting.length + troubles.length > 0 ? 'open' : 'resolved' }),
  };
}

function lineOf(
  { scope, cluster, state, severity, channel, thread }: RushIncident,
  workspaceUrl: string,
  t: Locale,
): Mrkdwn {
  const diagnosed = severity === null ? t.rush.uncertain : t.rush.severity(severity);
  const word = state === 'open' || state === 'resolved' ? t.incidentState(state) : diagnosed;
  const link = thread === null ? null : threadLink(workspaceUrl, channel, thread);
  return t.rush.line(esc(t.scope(scope), 300), esc(cluster, 100), word, link);
}
