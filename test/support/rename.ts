import { z } from 'zod';
import type { KubeObject } from './cases.ts';

export interface Renamer {
  /** The new name of an object or a namespace; what Kubernetes or a vendor named keeps its name. */
  readonly rename: (name: string) => string;
  readonly renameText: (objects: readonly KubeObject[]) => readonly KubeObject[];
  readonly count: number;
}

/**
 * Gives every object and namespace of a world another name, wherever it stands. Letters are shifted and all else is kept,
 * so that a name that Kubernetes made of others (`data-db-0`, `web-7d9f`) is made of their new names.
 */
export function renamer(objects: readonly KubeObject[]): Renamer {
  const names = new Set(objects.flatMap((object) => namesIn(object, '', keptKinds.has(String(object['kind'])))));
  for (const name of objects.flatMap(namesOfOthers)) names.delete(name);
  for (const name of names) if (isOfTheSystem(name)) names.delete(name);
  const rename = (name: string) => (names.has(name) ? shift(name) : name);
  // Longest first, so that no name is cut by one that it begins with.
  const known = [...names].toSorted((a, b) => b.length - a.length).map((name) => name.replaceAll('.', String.raw`\.`));
  const inText = new RegExp(`(?<![A-Za-z0-9-])(?:${known.join('|')})(?![A-Za-z0-9-])`, 'g');
  const renameIn = (value: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => renameIn(item, key));
    if (typeof value === 'string') {
      if (words.has(key)) return value;
      return texts.has(key) ? value.replaceAll(inText, renameQuoted) : rename(value);
    }
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, renameIn(item, name)]));
  };
  return {
    rename,
    renameText: (all) => all.map((object) => asObject.parse(renameIn(object, ''))),
    count: names.size,
  };

  /** A word of a sentence is no name, though an object may be called like it. */
  function renameQuoted(name: string, at: number, whole: string): string {
    const around = `${whole.charAt(at - 1)}${whole.charAt(at + name.length)}`;
    return /[-0-9]/.test(name) || /["'/]/.test(around) ? rename(name) : name;
  }
}

const asObject = z.record(z.string(), z.unknown());

/** What is known by its name: drivers and their leases, the roles of the system. */
const keptKinds = new Set(['CSIDriver', 'Lease', 'ClusterRole', 'ClusterRoleBinding']);

/** Keys whose values are never names of objects. */
const words = new Set([
  'kind',
  'apiVersion',
  'phase',
  'status',
  'reason',
  'type',
  'effect',
  'operator',
  'provisioner',
  'fsType',
]);
/** Keys whose values are sentences or hold more than a name. */
const texts = new Set(['message', 'note', 'holderIdentity', 'server', 'args', 'command', 'volumeHandle', 'url']);

/** Keys whose values name an object, whether it is there or not. */
const naming = new Set([
  'namespace',
  'claimName',
  'volumeName',
  'persistentVolumeName',
  'persistentVolumeClaimName',
  'nodeName',
  'storageClassName',
  'volumeSnapshotClassName',
  'boundVolumeSnapshotContentName',
  'secretName',
  'serviceName',
  'volume.kubernetes.io/selected-node',
]);

function namesIn(value: unknown, key: string, isKept: boolean): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((item) => namesIn(item, key, isKept));
  if (typeof value === 'string') return naming.has(key) && value !== '' ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => {
    const isName =
      name === 'name' && typeof item === 'string' && namedParts.has(key) && !(isKept && key === 'metadata');
    return isName ? [item] : namesIn(item, name, isKept);
  });
}

/** Where `name` is the name of an object, or of what a name is made of. */
const namedParts = new Set([
  'metadata',
  'volumes',
  'ownerReferences',
  'claimRef',
  'involvedObject',
  'regarding',
  'dataSource',
  'dataSourceRef',
  'volumeSnapshotRef',
  'scaleTargetRef',
  'configMap',
  'service',
]);

/** Drivers, which classes and volumes name. */
function namesOfOthers(object: KubeObject): readonly string[] {
  const driver = z.object({ kind: z.literal('CSIDriver'), metadata: z.object({ name: z.string() }) }).safeParse(object);
  return driver.success ? [driver.data.metadata.name] : [];
}

/** Names that Kubernetes gives: its own namespaces, volumes made for a claim, which are called by the claim's uid. */
function isOfTheSystem(name: string): boolean {
  return /^kube-|^default$|^kubernetes$|^system:|^pvc-[0-9a-f]{8}-[0-9a-f-]{27}$|^snapcontent-[0-9a-f-]{36}$/.test(
    name,
  );
}

function shift(name: string): string {
  return name.replaceAll(/[a-z]/g, (letter) => String.fromCharCode(97 + ((letter.charCodeAt(0) - 97 + 7) % 26)));
}
