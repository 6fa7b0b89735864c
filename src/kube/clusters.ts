import type { BackendAccess, Clock, ClusterAccess, ClusterReader, UsageSource } from '../ports.ts';
import { KubeClient } from './client.ts';
import { type KubeSettings, loadClusterConfigs } from './config.ts';
import { withInventory } from './inventory.ts';
import { createReader, type ReaderOptions } from './reader.ts';
import { createWriter } from './writer.ts';

export interface ClustersOptions {
  /** Credentials for reading. */
  readonly read: KubeSettings;
  /** Credentials for writes and for the reads just before them; absent in roles that must not hold them. */
  readonly act: KubeSettings | undefined;
  /** Contexts, each one cluster; empty takes the current one. */
  readonly contexts: readonly string[];
  readonly clock: Clock;
  readonly backend?: BackendAccess;
  /** Asked by the reading for a diagnosis alone. */
  readonly usage?: UsageSource | undefined;
}

/** One access per configured cluster, by its context's name. Throws `Refused` for a kubeconfig that must not be used. */
export function openClusters(options: ClustersOptions): ReadonlyMap<string, ClusterAccess> {
  const { contexts, clock } = options;
  const now = () => clock.now();
  const reading = loadClusterConfigs(options.read, contexts);
  const acting = options.act && loadClusterConfigs(options.act, contexts);
  return new Map(
    reading.map((config, i) => {
      const act = acting?.[i];
      const client = act && new KubeClient(act, { now });
      return [
        config.name,
        {
          name: config.name,
          reader: openReader(new KubeClient(config, { now }), now, options.backend, options.usage),
          act: client && {
            reader: openReader(client, now, options.backend),
            writer: createWriter(client),
            ...(options.backend?.writer ? { backend: options.backend.writer } : {}),
          },
        },
      ];
    }),
  );
}

function openReader(
  client: KubeClient,
  now: () => number,
  backend: BackendAccess | undefined,
  usage?: UsageSource,
): ClusterReader {
  return withInventory(createReader(client, { now, usage }), backend);
}

/** The reader of one context, for the command line. */
export function openOneReader(
  settings: KubeSettings,
  context: string | undefined,
  {
    clock,
    onRaw,
    usage,
  }: { readonly clock: Clock; readonly onRaw: ReaderOptions['onRaw']; readonly usage?: UsageSource | undefined },
): ClusterReader {
  const [config] = loadClusterConfigs(settings, context === undefined ? [] : [context]);
  if (!config) throw new Error('no cluster configuration');
  const now = () => clock.now();
  return withInventory(
    createReader(new KubeClient(config, { now }), { now, usage, ...(onRaw ? { onRaw } : {}) }),
    undefined,
  );
}

/** Names of the configured clusters, without opening any. */
export function clusterNames(settings: KubeSettings, contexts: readonly string[]): readonly string[] {
  return contexts.length > 0 ? contexts : loadClusterConfigs(settings, contexts).map((config) => config.name);
}
