import { mkdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import { Saved, snapshotYaml } from '../../../src/cli/snapshot.ts';
import type { Cluster } from '../../../src/domain/cluster.ts';
import type { ResourceName } from '../../../src/domain/resources.ts';
import { at, isRecord, textAt } from './objects.ts';

export const recordedFolder = fileURLToPath(new URL('../../recorded/cluster/', import.meta.url));

const keptOfNodeInfo = ['bootID', 'kubeletVersion'];

/**
 * Keeps the state of a scenario as `k8s-storage snapshot` would save it, without what names the machine on which it was
 * recorded and without the roles that every cluster is born with; beside it what must be found in it.
 */
export async function record(
  id: string,
  cluster: Cluster,
  objects: readonly unknown[],
  expected: { readonly scope: string; readonly found: readonly string[]; readonly everywhere: readonly string[] },
): Promise<void> {
  const folder = join(recordedFolder, id);
  await mkdir(folder, { recursive: true });
  const kept = objects.filter((object) => !isInborn(object) && !isChatter(object)).map(withoutMachine);
  // A provisioner signs as `DRIVER_HOST_UID`, and an underscore is no end of a word.
  const machine = new RegExp(`(?<![A-Za-z0-9-])${hostname().replaceAll('.', '\\.')}(?![A-Za-z0-9-])`, 'g');
  const snapshot = snapshotYaml(cluster, kept).replaceAll(machine, 'host');
  await writeFile(join(folder, 'snapshot.yaml'), snapshot);
  await writeFile(join(folder, 'expected.yaml'), stringify(expected, { lineWidth: 0 }));
}

/** Everything that the product read, each object once. */
export class Recording {
  readonly #saved = new Saved();

  readonly onRaw = (resource: ResourceName, raw: unknown): void => this.#saved.add(resource, raw);

  objects(): readonly unknown[] {
    return this.#saved.objects();
  }
}

/** Roles of the cluster itself, and those of the bot, which change with its catalogue. */
function isInborn(object: unknown): boolean {
  const labels = at(object, 'metadata.labels');
  if (isRecord(labels) && labels['kubernetes.io/bootstrapping'] !== undefined) return true;
  return /^ClusterRole/.test(textAt(object, 'kind')) && textAt(object, 'metadata.name').startsWith('k8s-storage-');
}

/** What every kubelet says when it starts, and of every container; no fault rests on it. */
function isChatter(object: unknown): boolean {
  if (textAt(object, 'kind') !== 'Event' || textAt(object, 'type') !== 'Normal') return false;
  return /^(NodeHas|Starting$|NodeAllocatableEnforced$|RegisteredNode$|Created$)/.test(textAt(object, 'reason'));
}

/** A Node without what its kubelet has learned from the machine on which it really ran. */
function withoutMachine(object: unknown): unknown {
  if (!isRecord(object) || object['kind'] !== 'Node' || !isRecord(object['status'])) return object;
  const { addresses: _addresses, images: _images, nodeInfo, ...status } = object['status'];
  const info = isRecord(nodeInfo) ? nodeInfo : {};
  const kept = Object.entries(info).filter(([key]) => keptOfNodeInfo.includes(key));
  return { ...object, status: { ...status, nodeInfo: Object.fromEntries(kept) } };
}
