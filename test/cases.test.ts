import { beforeAll, describe, expect, it } from 'vitest';
import type { Catalogue } from '../src/diagnose.ts';
import { refKey } from '../src/domain/ref.ts';
import { isTrouble } from '../src/domain/report.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import type { SpokenReport } from '../src/domain/spoken.ts';
import { type Case, cases, fallbacks, findCase, type KubeObject } from './support/cases.ts';
import { diagnoseObjects, faultIds, loadCatalogue } from './support/fixture.ts';

const written = new Set(faultIds());
const decided = cases.filter((one) => one.state === 'found' && one.faults.some((fault) => written.has(fault)));

let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = await loadCatalogue();
});

function run(one: Case, objects: readonly KubeObject[] = one.objects, scope: ScopeRef = one.scope): SpokenReport {
  return diagnoseObjects(objects, scope, catalogue);
}

function runWhole(one: Case): SpokenReport {
  return run(one, one.objects, { kind: 'Cluster' });
}

describe('a case whose fault is known', () => {
  it.each(decided)('$id: the first finding is the cause and names the culprits', (one) => {
    const [first] = run(one).findings;
    expect(first?.verdict).toBe('found');
    expect(one.faults).toContain(first?.fault);
    const names = first ? [first.subject, ...first.involved].map(refKey) : [];
    expect(names).toEqual(expect.arrayContaining(one.culprit.map(refKey)));
  });

  it.each(decided.filter((one) => one.wants.length > 0))('$id: what helps is offered', (one) => {
    const offered = offersOf(run(one)).map(({ remediation }) => remediation);
    const known = new Set(catalogue.remediations.map(({ id }) => id));
    expect(one.wants.filter((wanted) => known.has(wanted) && offered.includes(wanted))).not.toEqual([]);
  });
});

describe('every case', () => {
  it.each(cases)('$id: nothing is offered that must not be, nothing fails and nothing is unexplained', (one) => {
    const report = run(one);
    expect(report.unknown).toEqual([]);
    expect(report.unexplained).toEqual([]);
    expect(runWhole(one).unexplained).toEqual([]);
    for (const offer of offersOf(report)) {
      expect(one.offers).toContain(offer.remediation);
      const allowed = one.targets[offer.remediation];
      if (allowed) expect(allowed).toEqual(expect.arrayContaining(offer.plan.map(({ resource }) => resource)));
    }
  });
});

describe('a case in which nothing is wrong', () => {
  it.each(cases.filter((one) => one.state !== 'found'))('$id: no alarm', (one) => {
    expect(run(one).findings.filter(isTrouble)).toEqual([]);
  });
});

it('a forced detach that is still coming is told as progress, with the time left', () => {
  const [first] = runById('031-spot-node-gone-inside-force-detach-window').findings;
  expect(first).toMatchObject({ fault: 'multi-attach-node-gone', verdict: 'progress', recheckAfterSeconds: 7 * 60 });
});

it('a case that is stuck for a reason that no fault knows is unexplained', () => {
  const one = findCase('024-statefulset-halted-by-dead-node');
  const faults = catalogue.faults.filter(({ id }) => id !== 'detach-failed');
  const report = diagnoseObjects(one.objects, one.scope, { ...catalogue, faults });
  expect(report.findings).toEqual([]);
  expect(report.unexplained.map(({ object }) => object.kind)).toEqual(
    expect.arrayContaining(['VolumeAttachment', 'Pod']),
  );
});

it.each(Object.entries(fallbacks))('%s: without events %s is told, and nothing more is offered', (id, fault) => {
  const one = findCase(id);
  const report = run(
    one,
    one.objects.filter((object) => object['kind'] !== 'Event'),
  );
  expect(report.findings[0]).toMatchObject({ fault, verdict: 'found' });
  for (const offer of offersOf(report)) expect(one.offers).toContain(offer.remediation);
});

function runById(id: string): SpokenReport {
  return run(findCase(id));
}

function offersOf(report: SpokenReport) {
  return report.findings.flatMap((finding) => finding.offers);
}
