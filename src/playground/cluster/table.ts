import { at, isArray, isObject } from './json.ts';
import type { KubeObject, Resource } from './kinds.ts';
import { millis } from './time.ts';

type Cell = string | number;
interface Column {
  readonly name: string;
  readonly cell: (object: KubeObject, now: number) => Cell;
}

/** An age as kubectl prints it: `45s`, `12m`, `10h`, `3d4h`. */
export function ageText(from: string | undefined, now: number): string {
  const start = millis(from);
  if (start === undefined) return '<unknown>';
  const seconds = Math.max(0, Math.floor((now - start) / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours}h`;
  const days = Math.floor(hours / 24);
  return hours % 24 === 0 || days > 7 ? `${days}d` : `${days}d${hours % 24}h`;
}

function text(value: unknown, none = ''): Cell {
  if (typeof value === 'number') return value;
  if (typeof value === 'string' && value !== '') return value;
  if (typeof value === 'boolean') return String(value);
  return none;
}

function field(name: string, path: readonly string[], none = ''): Column {
  return { name, cell: (object) => text(at(object, ...path), none) };
}

function phase(name: string, path: readonly string[]): Column {
  return {
    name,
    cell: (object) => (object.metadata.deletionTimestamp === undefined ? text(at(object, ...path)) : 'Terminating'),
  };
}

function listOf(value: unknown): readonly unknown[] {
  return isArray(value) ? value : [];
}

const SHORT_MODES: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

function modes(...path: readonly string[]): Column {
  return {
    name: 'Access Modes',
    cell: (object) =>
      listOf(at(object, ...path))
        .map((mode) => SHORT_MODES[String(mode)] ?? String(mode))
        .join(','),
  };
}

function podStatus(object: KubeObject): Cell {
  const statuses = listOf(at(object, 'status', 'containerStatuses'));
  const waiting = statuses
    .map((status) => at(status, 'state', 'waiting', 'reason'))
    .find((reason) => typeof reason === 'string');
  if (object.metadata.deletionTimestamp !== undefined) return 'Terminating';
  if (at(object, 'status', 'phase') === 'Succeeded') return 'Completed';
  return text(waiting ?? at(object, 'status', 'reason') ?? at(object, 'status', 'phase'));
}

function ready(...path: readonly string[]): Column {
  return {
    name: 'Ready',
    cell: (object) => `${text(at(object, 'status', 'readyReplicas'), '0')}/${text(at(object, ...path), '0')}`,
  };
}

const age: Column = { name: 'Age', cell: (object, now) => ageText(object.metadata.creationTimestamp, now) };

const columns: Partial<Record<Resource, readonly Column[]>> = {
  pods: [
    {
      name: 'Ready',
      cell: (object) => {
        const statuses = listOf(at(object, 'status', 'containerStatuses'));
        const started = statuses.filter((status) => at(status, 'ready') === true).length;
        return `${started}/${listOf(at(object, 'spec', 'containers')).length}`;
      },
    },
    { name: 'Status', cell: podStatus },
    field('Node', ['spec', 'nodeName'], '<none>'),
    age,
  ],
  persistentvolumeclaims: [
    phase('Status', ['status', 'phase']),
    field('Volume', ['spec', 'volumeName']),
    field('Capacity', ['status', 'capacity', 'storage']),
    modes('status', 'accessModes'),
    field('StorageClass', ['spec', 'storageClassName'], '<unset>'),
    age,
  ],
  persistentvolumes: [
    field('Capacity', ['spec', 'capacity', 'storage']),
    modes('spec', 'accessModes'),
    field('Reclaim Policy', ['spec', 'persistentVolumeReclaimPolicy']),
    phase('Status', ['status', 'phase']),
    {
      name: 'Claim',
      cell: (object) => {
        const claim = at(object, 'spec', 'claimRef');
        return isObject(claim) ? `${text(claim['namespace'])}/${text(claim['name'])}` : '';
      },
    },
    field('StorageClass', ['spec', 'storageClassName']),
    age,
  ],
  nodes: [
    {
      name: 'Status',
      cell: (object) => {
        const condition = listOf(at(object, 'status', 'conditions')).find((entry) => at(entry, 'type') === 'Ready');
        const cordoned = at(object, 'spec', 'unschedulable') === true ? ',SchedulingDisabled' : '';
        return `${at(condition, 'status') === 'True' ? 'Ready' : 'NotReady'}${cordoned}`;
      },
    },
    field('Version', ['status', 'nodeInfo', 'kubeletVersion']),
    age,
  ],
  events: [
    {
      name: 'Last Seen',
      cell: (object, now) => ageText(String(text(at(object, 'lastTimestamp') ?? at(object, 'eventTime'))), now),
    },
    field('Type', ['type']),
    field('Reason', ['reason']),
    {
      name: 'Object',
      cell: (object) =>
        `${String(text(at(object, 'involvedObject', 'kind'))).toLowerCase()}/${text(at(object, 'involvedObject', 'name'))}`,
    },
    field('Message', ['message']),
  ],
  namespaces: [phase('Status', ['status', 'phase']), age],
  deployments: [
    ready('spec', 'replicas'),
    field('Up-to-date', ['status', 'updatedReplicas'], '0'),
    field('Available', ['status', 'availableReplicas'], '0'),
    age,
  ],
  replicasets: [
    field('Desired', ['spec', 'replicas'], '0'),
    field('Current', ['status', 'replicas'], '0'),
    field('Ready', ['status', 'readyReplicas'], '0'),
    age,
  ],
  statefulsets: [ready('spec', 'replicas'), age],
  daemonsets: [
    field('Desired', ['status', 'desiredNumberScheduled'], '0'),
    field('Current', ['status', 'currentNumberScheduled'], '0'),
    field('Ready', ['status', 'numberReady'], '0'),
    age,
  ],
  storageclasses: [
    field('Provisioner', ['provisioner']),
    field('ReclaimPolicy', ['reclaimPolicy']),
    field('VolumeBindingMode', ['volumeBindingMode']),
    age,
  ],
  volumeattachments: [
    field('Attacher', ['spec', 'attacher']),
    field('PV', ['spec', 'source', 'persistentVolumeName']),
    field('Node', ['spec', 'nodeName']),
    field('Attached', ['status', 'attached']),
    age,
  ],
  csinodes: [{ name: 'Drivers', cell: (object) => listOf(at(object, 'spec', 'drivers')).length }, age],
  leases: [field('Holder', ['spec', 'holderIdentity']), age],
};

/** The `meta.k8s.io/v1 Table` form of objects, which kubectl asks for before it prints them. */
export function tableOf(
  resource: Resource,
  objects: readonly KubeObject[],
  metadata: Readonly<Record<string, unknown>>,
  now: number,
): Readonly<Record<string, unknown>> {
  const shown = columns[resource] ?? [age];
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: [
      { name: 'Name', type: 'string', format: 'name', description: '', priority: 0 },
      ...shown.map((column) => ({ name: column.name, type: 'string', format: '', description: '', priority: 0 })),
    ],
    rows: objects.map((object) => ({
      cells: [object.metadata.name, ...shown.map((column) => column.cell(object, now))],
      object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata },
    })),
  };
}
