import { describeScope } from '../../domain/scope.ts';
import type { ChatMessage, RushIncident } from '../../ports.ts';
import { type Mrkdwn, pack, section, within } from './blocks.ts';
import { threadLink } from './link.ts';
import { esc } from './text.ts';
import { metadataOf, severityWord } from './words.ts';

/** One message for many incidents at once: what they are about, and where each has its thread once it is diagnosed. */
export function rushMessage(incidents: readonly RushIncident[], workspaceUrl: string): ChatMessage {
  const waiting = incidents.filter(({ state }) => state === 'open');
  const troubles = incidents.filter((one) => one.state === 'diagnosed' && !one.isSilent);
  const resolved = incidents.filter((one) => one.state === 'resolved' && !one.isSilent);
  const joined = incidents.filter(({ state }) => state === 'joined').length;
  const well = incidents.filter((one) => one.state === 'resolved' && one.isSilent).length;
  const counts = [
    [troubles.length, 'with trouble'],
    [waiting.length, 'being diagnosed'],
    [resolved.length, 'resolved'],
    [joined, 'effects of one of them'],
    [well, 'whose storage is well'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
  const what = `Many alerts at once: ${counts.join(', ')}.`;
  const todo = 'To do: begin with the threads below. Each trouble gets its own when it is diagnosed.';
  const lines = [...troubles, ...waiting, ...resolved].map((one) => lineOf(one, workspaceUrl));
  return {
    text: `${what}\n${todo}`,
    blocks: within([
      section(`*${what}*\n${todo}`),
      ...pack(lines, 6, '; `/k8s-storage incidents` lists them').map(section),
    ]),
    metadata: metadataOf('incident', { state: waiting.length + troubles.length > 0 ? 'open' : 'resolved' }),
  };
}

function lineOf({ scope, cluster, state, severity, channel, thread }: RushIncident, workspaceUrl: string): Mrkdwn {
  const about = `${esc(describeScope(scope), 300)} of ${esc(cluster, 100)}`;
  const word =
    state === 'open'
      ? 'being diagnosed'
      : state === 'resolved'
        ? 'resolved'
        : severity === null
          ? 'uncertain'
          : severityWord(severity).toLowerCase();
  const link = thread === null ? '' : `, <${threadLink(workspaceUrl, channel, thread)}|thread>`;
  return `• ${about}: ${word}${link}`;
}
