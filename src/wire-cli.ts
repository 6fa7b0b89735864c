import { homedir } from 'node:os';
import type { CliDeps } from './cli/deps.ts';
import { environment, readConfig } from './config.ts';
import { faults } from './faults/index.ts';
import { remediations } from './remediations/index.ts';

/** The far ends of the command line, each loaded when a word needs it: a diagnosis of files loads no client at all. */
export function cliDeps(): CliDeps {
  return {
    out: (text) => void process.stdout.write(text),
    err: (text) => void process.stderr.write(text),
    now: () => Date.now(),
    timeZone: () => new Intl.DateTimeFormat().resolvedOptions().timeZone,
    catalogue: { faults, remediations },

    async readFiles(paths, options) {
      const { readFiles } = await import('./kube/files.ts');
      return readFiles(paths, { ...options, clock: () => Date.now() });
    },

    async writeFile(path, content) {
      const { writeFile } = await import('node:fs/promises');
      await writeFile(path, content, { mode: 0o600 });
    },

    async draw(chain, format) {
      const { toPng, toSvg } = await import('./picture/draw.ts');
      return format === 'png' ? toPng(chain) : toSvg(chain);
    },

    async openReader(context, onRaw) {
      const { openOneReader } = await import('./kube/clusters.ts');
      const { kube, prometheusUrl: url } = readConfig(environment());
      const usage =
        url === undefined
          ? undefined
          : (await import('./prometheus/usage.ts')).openPrometheus({
              url,
              hasSeveralClusters: kube.clusters.length > 1,
            });
      const settings = { kubeconfig: kube.config, home: homedir(), allowedPlugins: [] };
      return openOneReader(settings, context ?? kube.context, { clock: { now: () => Date.now() }, onRaw, usage });
    },

    async openStore() {
      const [{ useEmbedded }, { openStore }, { createLog }] = await Promise.all([
        import('./db/embedded.ts'),
        import('./db/store.ts'),
        import('./log.ts'),
      ]);
      const config = readConfig(environment());
      const log = createLog('warn');
      if (config.databaseUrl !== undefined) return openStore({ connectionString: config.databaseUrl, log });
      const database = await useEmbedded({ dataDir: config.dataDir, log });
      const store = await openStore({ connectionString: database.connectionString, log });
      return {
        ...store,
        close: async () => {
          await store.close();
          await database.stop();
        },
      };
    },
  };
}
