import { isObject, type JsonObject, objectAt, objectsAt, stringAt } from './json.ts';

/** An object of the simulated cluster or backend, as the API would give it. */
export type ClusterObject = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | null | undefined;
    readonly uid?: string | null | undefined;
    readonly deletionTimestamp?: string | null | undefined;
    readonly labels?: Readonly<Record<string, string>> | null | undefined;
    readonly finalizers?: readonly string[] | null | undefined;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
};

/** How a state looks: fine, on its way, wrong, or of no interest. */
export type Tone = 'good' | 'busy' | 'bad' | 'muted';

/** One line of the page's cluster panel. `key` is stable over changes of the object. */
export type ClusterRow = {
  readonly key: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly chips: readonly { readonly text: string; readonly tone: Tone }[];
  readonly detail: string;
};

/** The kinds of the panel, in its order. */
export const panelKinds = [
  'Node',
  'Pod',
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'BackendVolume',
] as const;

/** The lines of the panel for these objects; kinds that the panel does not show are left out. */
export function toRows(objects: readonly ClusterObject[]): readonly ClusterRow[] {
  const names = new Set(objects.filter((object) => object.kind === 'PersistentVolume').map(handleOf));
  return objects
    .filter((object) => (panelKinds as readonly string[]).includes(object.kind))
    .map((object) => toRow(object, names))
    .sort((a, b) => order(a) - order(b) || compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

function toRow(object: ClusterObject, handles: ReadonlySet<string>): ClusterRow {
  const { chips, detail } = describe(object, handles);
  const { name, namespace, deletionTimestamp } = object.metadata;
  const isDeleting = deletionTimestamp !== undefined && deletionTimestamp !== null;
  return {
    key: `${object.kind}/${namespace ?? ''}/${name}`,
    kind: object.kind,
    namespace: namespace ?? '',
    name,
    chips: isDeleting ? [{ text: 'Terminating', tone: 'bad' }, ...chips.map(dim)] : chips,
    detail,
  };
}

/** What is being deleted is fine no more, whatever its phase says. */
function dim(chip: ClusterRow['chips'][number]): ClusterRow['chips'][number] {
  return chip.tone === 'good' ? { ...chip, tone: 'muted' } : chip;
}

type Description = Pick<ClusterRow, 'chips' | 'detail'>;

function describe(object: ClusterObject, handles: ReadonlySet<string>): Description {
  switch (object.kind) {
    case 'Node':
      return describeNode(object);
    case 'Pod':
      return describePod(object);
    case 'PersistentVolumeClaim':
      return describeClaim(object);
    case 'PersistentVolume':
      return describeVolume(object);
    case 'VolumeAttachment':
      return describeAttachment(object);
    default:
      return describeBackend(object, handles);
  }
}

function describeNode({ spec, status }: ClusterObject): Description {
  const ready = objectsAt(status, 'conditions').find((condition) => condition['type'] === 'Ready');
  const isReady = ready?.['status'] === 'True';
  const taints = objectsAt(spec, 'taints').map((taint) => stringAt(taint, 'key').replace('node.kubernetes.io/', ''));
  const attached = objectsAt(status, 'volumesAttached').length;
  return {
    chips: [
      isReady ? { text: 'Ready', tone: 'good' } : { text: 'NotReady', tone: 'bad' },
      ...(taints.includes('out-of-service') ? [{ text: 'out-of-service', tone: 'busy' } as const] : []),
      ...(objectAt({ spec }, 'spec')['unschedulable'] === true ? [{ text: 'cordoned', tone: 'muted' } as const] : []),
    ],
    detail: attached === 1 ? '1 volume attached' : `${attached} volumes attached`,
  };
}

function describePod({ spec, status }: ClusterObject): Description {
  const containers = [...objectsAt(status, 'initContainerStatuses'), ...objectsAt(status, 'containerStatuses')];
  const waiting = containers.map((container) => stringAt(objectAt(objectAt(container, 'state'), 'waiting'), 'reason'));
  const isReady = objectsAt(status, 'conditions').some(
    (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
  );
  const phase = stringAt(status, 'phase') || 'Unknown';
  const node = stringAt(spec, 'nodeName');
  const reason = waiting.find((text) => text !== '');
  const claims = objectsAt(spec, 'volumes')
    .map((volume) => stringAt(objectAt(volume, 'persistentVolumeClaim'), 'claimName'))
    .filter((claim) => claim !== '');
  const parts = [node === '' ? 'no node yet' : `on ${node}`, ...claims.map((claim) => `claim ${claim}`)];
  const detail = parts.join(' · ');
  if (phase === 'Running' && isReady) return { chips: [{ text: 'Ready', tone: 'good' }], detail };
  if (phase === 'Succeeded') return { chips: [{ text: 'Completed', tone: 'muted' }], detail };
  if (phase === 'Failed') return { chips: [{ text: 'Failed', tone: 'bad' }], detail };
  if (reason !== undefined) return { chips: [{ text: reason, tone: 'bad' }], detail };
  if (phase === 'Pending' && node !== '') return { chips: [{ text: 'ContainerCreating', tone: 'bad' }], detail };
  return { chips: [{ text: phase === 'Running' ? 'NotReady' : phase, tone: 'busy' }], detail };
}

function describeClaim({ spec, status }: ClusterObject): Description {
  const phase = stringAt(status, 'phase') || 'Pending';
  const volume = stringAt(spec, 'volumeName');
  const size = stringAt(objectAt(status, 'capacity'), 'storage') || requested(spec);
  return {
    chips: [{ text: phase, tone: phase === 'Bound' ? 'good' : phase === 'Lost' ? 'bad' : 'busy' }],
    detail: [size, volume === '' ? 'no volume yet' : volume].filter((part) => part !== '').join(' · '),
  };
}

function describeVolume({ spec, status }: ClusterObject): Description {
  const phase = stringAt(status, 'phase') || 'Pending';
  const policy = stringAt(spec, 'persistentVolumeReclaimPolicy');
  const claim = objectAt(spec, 'claimRef');
  const tones: Readonly<Record<string, Tone>> = { Bound: 'good', Available: 'muted', Failed: 'bad' };
  const claimName = stringAt(claim, 'name');
  return {
    chips: [
      { text: phase, tone: tones[phase] ?? 'busy' },
      ...(policy === '' ? [] : [{ text: policy, tone: policy === 'Retain' ? 'busy' : 'muted' } as const]),
    ],
    detail: claimName === '' ? 'no claim' : `claim ${stringAt(claim, 'namespace')}/${claimName}`,
  };
}

function describeAttachment({ spec, status }: ClusterObject): Description {
  const isAttached = objectAt({ status }, 'status')['attached'] === true;
  const failed = ['attachError', 'detachError'].some((key) => stringAt(objectAt(status, key), 'message') !== '');
  const volume = stringAt(objectAt(spec, 'source'), 'persistentVolumeName');
  return {
    chips: [
      isAttached ? { text: 'attached', tone: 'good' } : { text: 'not attached', tone: 'busy' },
      ...(failed ? [{ text: 'error', tone: 'bad' } as const] : []),
    ],
    detail: `${volume} → ${stringAt(spec, 'nodeName')}`,
  };
}

function describeBackend({ metadata, spec }: ClusterObject, handles: ReadonlySet<string>): Description {
  const list = objectAt({ spec }, 'spec')['attachedTo'];
  const nodes: readonly unknown[] = Array.isArray(list) ? list : [];
  const isKnown = handles.has(metadata.name);
  return {
    chips: [
      isKnown ? { text: 'in use', tone: 'good' } : { text: 'no volume object', tone: 'bad' },
      ...(nodes.length > 1 ? [{ text: 'attached twice', tone: 'bad' } as const] : []),
    ],
    detail: nodes.length === 0 ? 'attached to nothing' : `attached to ${nodes.map(String).join(', ')}`,
  };
}

function handleOf({ spec }: ClusterObject): string {
  return stringAt(objectAt(spec, 'csi'), 'volumeHandle');
}

function requested(spec: unknown): string {
  const requests: JsonObject = objectAt(objectAt(spec, 'resources'), 'requests');
  return isObject(requests) ? stringAt(requests, 'storage') : '';
}

function order(row: ClusterRow): number {
  return (panelKinds as readonly string[]).indexOf(row.kind);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
