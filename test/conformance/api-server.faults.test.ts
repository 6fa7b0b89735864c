import { expect, it } from 'vitest';
import type { PolicyRule } from '../../src/playground/cluster/kinds.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../src/playground/cluster/start.ts';
import type { RemoveOptions } from '../../src/playground/cluster/store.ts';
import { failuresOf, limitedRules } from './api-server.runner.ts';
import { underTest } from './api-server.simulated.ts';
import { apiServerSuite } from './api-server.suite.ts';

/** A way in which the simulated server could be wrong, and a check that must notice it. */
interface Fault {
  readonly what: string;
  readonly noticedBy: string;
  /** Breaks a server that runs. */
  readonly make?: (cluster: SimulatedCluster) => void;
  readonly actRules?: readonly PolicyRule[];
}

const withoutOption = (cluster: SimulatedCluster, key: keyof RemoveOptions): void => {
  const { store } = cluster;
  const remove = store.remove.bind(store);
  store.remove = (resource, namespace, name, options = {}) =>
    remove(resource, namespace, name, Object.fromEntries(Object.entries(options).filter(([given]) => given !== key)));
};

const faults: readonly Fault[] = [
  {
    what: 'a delete that ignores its conditions',
    noticedBy: 'deletes only what the preconditions name',
    make: (cluster) => withoutOption(cluster, 'preconditions'),
  },
  {
    what: 'a delete that ignores that it is a dry run',
    noticedBy: 'shows a deletion and its finalizers as they would be, and keeps the object as it is',
    make: (cluster) => withoutOption(cluster, 'dryRun'),
  },
  {
    what: 'a delete that ignores its policy',
    noticedBy: 'adds the finalizer that the policy asks for',
    make: (cluster) => withoutOption(cluster, 'propagationPolicy'),
  },
  {
    what: 'a delete that ignores the grace',
    noticedBy: 'lets a pod on a node have its grace, which only gets shorter, and ends it at once with none',
    make: (cluster) => withoutOption(cluster, 'gracePeriodSeconds'),
  },
  {
    what: 'a delete that waits for no finalizer',
    noticedBy: 'keeps a deleted object until its last finalizer goes, and takes no new one meanwhile',
    make({ store }) {
      const remove = store.remove.bind(store);
      store.remove = (resource, namespace, name, options) => {
        if (options?.dryRun !== true)
          store.mutate(resource, namespace, name, (draft) => {
            draft.metadata.finalizers = [];
          });
        return remove(resource, namespace, name, options);
      };
    },
  },
  {
    what: 'a write that ignores that it is a dry run',
    noticedBy: 'changes nothing in a dry run, but refuses what it would refuse',
    make({ store }) {
      const update = store.update.bind(store);
      store.update = (resource, input, options) => update(resource, input, { ...options, dryRun: false });
    },
  },
  {
    what: 'a write through the main resource that takes the status along',
    noticedBy: 'ignores a status that is written through the main resource',
    make({ store }) {
      const update = store.update.bind(store);
      store.update = (resource, input, options) => update(resource, input, { ...options, part: 'both' });
    },
  },
  {
    what: 'a write over a newer version',
    noticedBy: 'refuses an update that carries an old version by 409',
    make({ store }) {
      const update = store.update.bind(store);
      store.update = (resource, input, options) => {
        const read: unknown = structuredClone(input);
        if (typeof read === 'object' && read !== null && 'metadata' in read) {
          const { metadata } = read;
          if (typeof metadata === 'object' && metadata !== null) Reflect.deleteProperty(metadata, 'resourceVersion');
        }
        return update(resource, read, options);
      };
    },
  },
  {
    what: 'a list that leaves something out',
    noticedBy: 'pages a list: pages add up to the list, and what is created meanwhile is not in it',
    make({ store }) {
      const list = store.list.bind(store);
      store.list = (resource, namespace) => list(resource, namespace).slice(0, 3);
    },
  },
  {
    what: 'a watch that never tells of a deletion',
    noticedBy: 'watches from a version: added, modified, deleted, in that order',
    make({ store }) {
      const subscribe = store.subscribe.bind(store);
      store.subscribe = (listener) =>
        subscribe((change) => {
          if (change.type !== 'DELETED') listener(change);
        });
    },
  },
  {
    what: 'a past that is never forgotten',
    noticedBy: 'tells a watch from a forgotten state so in its stream, by 410',
    make({ store }) {
      store.compact = () => {};
    },
  },
  {
    what: 'a token that outlives its state',
    noticedBy: 'answers a token of a forgotten state by 410, with one that goes on without what was seen',
    make({ server }) {
      server.expireContinueTokens = () => {};
    },
  },
  {
    what: 'a person with more rights than the rules give',
    noticedBy: 'reviews deletecollection pods: no',
    actRules: [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }],
  },
  {
    what: 'a person with fewer rights than the rules give',
    noticedBy: 'lets happen what a rule allows, of every namespace and of one name',
    actRules: limitedRules.slice(1),
  },
];

async function failuresWith({ make, actRules = limitedRules }: Omit<Fault, 'what' | 'noticedBy'>, patienceMs?: number) {
  const cluster = await startSimulatedCluster({
    clock: { now: () => Date.parse('2026-11-30T12:00:00Z') },
    scenario: 'incident',
    seed: 7,
    tickMs: 0,
    actRules,
  });
  try {
    make?.(cluster);
    return await failuresOf((runner) => apiServerSuite(runner, () => Promise.resolve(underTest(cluster, patienceMs))));
  } finally {
    await cluster.close();
  }
}

it('finds nothing in the simulated server as it is', async () => {
  expect(await failuresWith({})).toEqual([]);
});

// Whoever waits for an event that never comes is red after a second instead of ten.
it.each(faults)('is red for $what', { timeout: 60_000 }, async (fault) => {
  expect(await failuresWith(fault, 1000)).toContain(fault.noticedBy);
});
