import fc from 'fast-check';
import { expect } from 'vitest';
import { renderText } from '../../src/cli/render.ts';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import { Cluster } from '../../src/domain/cluster.ts';
import { resources } from '../../src/domain/resources.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { reportIn, type SpokenReport } from '../../src/domain/spoken.ts';
import { languages } from '../../src/domain/text.ts';
import { faults } from '../../src/faults/index.ts';
import { describeProblems } from '../../src/kube/files.ts';
import { parseObjects } from '../../src/kube/parse.ts';
import { locales } from '../../src/locales/index.ts';
import { remediations } from '../../src/remediations/index.ts';
import { NOW } from './fixture.ts';
import { world } from './worlds.ts';

const catalogue: Catalogue = { faults, remediations };
/** Far above what any generated world needs, on a machine that does ten other things. */
const LONGEST_MS = 10_000;
const HOLES = /\bundefined\b|\bNaN\b|\[object |\bInfinity\b/;

/** Judges that many generated clusters: nothing throws or loops, no check fails, and no sentence has a hole. */
export function judgeWrongInput(runs: number, seed: number): void {
  const judged = fc.property(world, fc.nat(1000), (objects, pick) => {
    const began = performance.now();
    const cluster = clusterOf(objects);
    const language = languages[pick % languages.length] ?? 'en';
    const judgement = diagnose(cluster, scopeOf(cluster, pick), catalogue, {
      requests: 0,
      objects: objects.length,
      bytes: 0,
      milliseconds: 0,
    });
    const report = reportIn(judgement, language);
    const text = renderText(report, catalogue, locales[language]);
    expect(performance.now() - began).toBeLessThan(LONGEST_MS);
    expect(report.unknown.filter(({ reason }) => /check failed|could not be worked out/.test(reason))).toEqual([]);
    expect(sentencesOf(report).filter((sentence) => sentence === '' || HOLES.test(sentence))).toEqual([]);
    expect(text).not.toContain('hunter2-planted');
  });
  fc.assert(judged, { numRuns: runs, seed });
}

/** Which faults some generated clusters have: worlds in which nothing is found would prove nothing. */
export function faultsMetBy(runs: number, seed: number): ReadonlySet<string> {
  const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
  const reports = fc
    .sample(world, { numRuns: runs, seed })
    .map((objects) => diagnose(clusterOf(objects), { kind: 'Cluster' }, catalogue, cost));
  return new Set(reports.flatMap(({ findings }) => findings.map(({ fault }) => fault)));
}

/** As from files: a kind of which an object could not be understood counts as not read. */
function clusterOf(raw: readonly unknown[]): Cluster {
  const { objects, problems } = parseObjects(raw);
  const unread = [...Map.groupBy(problems, ({ resource }) => resource)].map(([resource, list]) => ({
    resource,
    reason: describeProblems(list),
  }));
  return new Cluster({
    identity: { name: null, uid: null },
    now: NOW,
    objects,
    unread,
    podCoverage: { kind: 'all' },
    source: 'files',
  });
}

/** The whole cluster, or one of the objects that are there. */
function scopeOf(cluster: Cluster, pick: number): ScopeRef {
  const { pods, persistentvolumeclaims, persistentvolumes, nodes, volumeattachments, statefulsets } = cluster.objects;
  const all = [pods, persistentvolumeclaims, persistentvolumes, nodes, volumeattachments, statefulsets].flat();
  const chosen = pick % 2 === 0 ? undefined : all[pick % Math.max(1, all.length)];
  return chosen
    ? { kind: resources[chosen.resource].kind, namespace: chosen.namespace, name: chosen.name }
    : { kind: 'Cluster' };
}

function sentencesOf({ findings, unexplained }: SpokenReport): readonly string[] {
  return [
    ...findings.flatMap(({ summary, explanation, evidence, manual }) => [
      summary,
      explanation,
      ...evidence.map(({ says }) => says),
      ...manual.map(({ says }) => says),
    ]),
    ...unexplained.map(({ says }) => says),
  ];
}
