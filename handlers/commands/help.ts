import { defineCommand } from '../../src/surface.ts';

export const help = defineCommand({
  word: 'help',
  usage: 'help',
  does: 'shows this text',

  async run(_args, _actor, surface, all) {
    const lines = all.map((command) => `• \`${command.usage}\` ${command.does}`);
    const clusters =
      surface.clusters.length > 1 ? [`Clusters: ${surface.clusters.map((name) => `\`${name}\``).join(', ')}.`] : [];
    return {
      text: [
        '*I find out why storage in Kubernetes is stuck, and repair it when people approve.*',
        'Type `/k8s-storage` and one of these words:',
        ...lines,
        'For example `/k8s-storage diagnose pvc/data-db-0 -n shop`.',
        "In an incident's thread use the buttons, or mention me with `status`, `recheck`, `evidence`, `commands` or `help`.",
        ...clusters,
      ].join('\n'),
    };
  },
});
