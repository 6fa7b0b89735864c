import { Cluster } from '../domain/cluster.ts';
import { Refused } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { BackendAccess, ClusterReader, ReadResult } from '../ports.ts';

/**
 * A reader whose snapshots also hold what the storage backend itself has. Without an inventory the kind counts as read
 * and empty: there is nobody who could be asked, which is no failed read. An inventory that does not answer is unread.
 */
export function withInventory(reader: ClusterReader, backend: BackendAccess | undefined): ClusterReader {
  return {
    ...reader,
    async read(request, signal) {
      const result = await reader.read(request, signal);
      return request.needs.includes('backendvolumes') ? addInventory(result, backend, signal) : result;
    },
    async get(resource, namespace, name, signal) {
      if (resource !== 'backendvolumes') return reader.get(resource, namespace, name, signal);
      if (!backend) throw new Refused({ en: 'no storage backend is connected', zh: '没有连接存储后端' });
      return backend.inventory.get(name, signal);
    },
  };
}

async function addInventory(
  { cluster, cost }: ReadResult,
  backend: BackendAccess | undefined,
  signal: AbortSignal,
): Promise<ReadResult> {
  const others = cluster.unread.filter(({ resource }) => resource !== 'backendvolumes');
  try {
    const volumes = (await backend?.inventory.list(signal)) ?? [];
    const objects = { ...cluster.objects, backendvolumes: volumes };
    const more = backend === undefined ? 0 : 1;
    const writesBackend = backend?.writer !== undefined;
    return {
      cluster: new Cluster({ ...fieldsOf(cluster), objects, unread: others, writesBackend }),
      cost: { ...cost, requests: cost.requests + more, objects: cost.objects + volumes.length },
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const reason = {
      en: en`the backend inventory did not answer: ${why}`,
      zh: zh`存储后端的清单没有应答：${why}`,
    };
    return {
      cluster: new Cluster({ ...fieldsOf(cluster), unread: [...others, { resource: 'backendvolumes', reason }] }),
      cost,
    };
  }
}

function fieldsOf(cluster: Cluster) {
  const { identity, now, objects, unread, podCoverage, source, usage } = cluster;
  return { identity, now, objects, unread, podCoverage, source, usage };
}
