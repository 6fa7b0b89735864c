import type { Catalogue } from '../../src/diagnose.ts';
import type { Cluster } from '../../src/domain/cluster.ts';
import type { ResourceName } from '../../src/domain/resources.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import type { SpokenFinding } from '../../src/domain/spoken.ts';
import { minutes } from '../../src/domain/time.ts';
import { cases } from './cases.ts';
import { diagnoseObjects, loadCatalogue, loadFixtures, NOW, parseScope, toCluster } from './fixture.ts';
import { readRecorded, recordedFiles } from './recorded.ts';

/** A state that the tests know, whatever its source, and how it is looked at. */
export interface KnownState {
  readonly name: string;
  readonly objects: readonly unknown[];
  readonly scope: ScopeRef;
  readonly notRead: readonly ResourceName[];
  readonly now: number;
  /** Faults that are asked; all when undefined. */
  readonly faults: readonly string[] | undefined;
}

const whole: ScopeRef = { kind: 'Cluster' };

/** Every fault fixture, every case and every recorded moment, the last two also as a whole cluster. */
export function knownStates(): readonly KnownState[] {
  const fixtures = [...loadFixtures().values()].flat().map(({ id, file, objects, scope, notRead, with: others }) => ({
    name: `${id}/${file}`,
    objects,
    scope: parseScope(scope),
    notRead,
    now: NOW,
    faults: [id, ...others],
  }));
  const incidents = cases.flatMap(({ id, objects, scope }) =>
    [scope, whole].map((looked) => ({ name: id, objects, scope: looked, notRead: [], now: NOW, faults: undefined })),
  );
  const recorded = recordedFiles().flatMap((file) => {
    const { objects, latest } = readRecorded(file);
    return [0, minutes(20)].map((later) => ({
      name: file,
      objects,
      scope: whole,
      notRead: [],
      now: latest + later,
      faults: undefined,
    }));
  });
  return [...fixtures, ...incidents, ...recorded];
}

export interface KnownFinding {
  readonly state: KnownState;
  readonly cluster: Cluster;
  readonly finding: SpokenFinding;
}

/** What is found in known states, each with the cluster in which it is. */
export async function findingsIn(states: readonly KnownState[]): Promise<readonly KnownFinding[]> {
  const all = await loadCatalogue();
  return states.flatMap((state) => {
    const { faults, objects, scope, notRead, now } = state;
    const catalogue: Catalogue = faults ? { ...all, faults: all.faults.filter(({ id }) => faults.includes(id)) } : all;
    const cluster = toCluster(objects, { notRead, now });
    const { findings } = diagnoseObjects(objects, scope, catalogue, { notRead, now });
    return findings.map((finding) => ({ state, cluster, finding }));
  });
}
