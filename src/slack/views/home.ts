import type { HomeView } from '@slack/types';
import { context, header, section, some } from './blocks.ts';
import { code } from './text.ts';

/** The app's Home tab: what the bot is for and how to begin. It shows nothing of a cluster's inside. */
export function homeView(clusters: readonly string[]): HomeView {
  const names = some(clusters, 20, (name) => `• ${code(name, 200)}`).join('\n');
  return {
    type: 'home',
    blocks: [
      header('Kubernetes storage'),
      section(
        'I find out why a volume, a claim or a pod is stuck, show the evidence, and repair it when people approve.',
      ),
      section(
        '*To begin*, type `/k8s-storage diagnose` in a channel that I am in, or `/k8s-storage diagnose pvc/data-db-0 -n shop` for one object. `/k8s-storage help` lists every word.',
      ),
      section(
        "*In an incident's thread* use the buttons, the message shortcut “Diagnose storage here”, or mention me with `status`, `recheck`, `evidence` or `commands`.",
      ),
      section(
        '*Nothing is changed without approval.* A plan shows every write before anybody says yes, and every decision and step is kept in the audit trail.',
      ),
      ...(clusters.length === 0 ? [] : [section(`*Clusters*\n${names}`)]),
      context('Everything that I post can be read by everybody in the channel.'),
    ],
  };
}
