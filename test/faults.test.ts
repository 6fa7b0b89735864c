import { beforeAll, describe, expect, it } from 'vitest';
import { describeRef } from '../src/domain/ref.ts';
import type { Remediation } from '../src/domain/remediation.ts';
import type { SpokenFinding } from '../src/domain/spoken.ts';
import {
  diagnoseObjects,
  type Fixture,
  faultIds,
  loadFault,
  loadFixtures,
  loadRemediations,
  parseScope,
} from './support/fixture.ts';

const fixtures = loadFixtures();
let remediations: readonly Remediation[] = [];

beforeAll(async () => {
  remediations = await loadRemediations();
});

/** Faults that end by themselves for as long as they can be seen at all. */
const alwaysProgress = new Set(['volume-ownership-change']);

describe.each(faultIds())('%s', (id) => {
  const own = fixtures.get(id) ?? [];

  it('is shown by a fixture that has it, one that looks like it, and one that could not be read', () => {
    const verdicts = own.map((fixture) => fixture.expect.verdict);
    const has = alwaysProgress.has(id) ? 'progress' : 'found';
    expect(verdicts).toEqual(expect.arrayContaining([has, 'clear', 'unknown']));
  });

  it.each(own)('$file: $title', async (fixture) => {
    expect(fixture.file.split('.')[0]).toBe(fixture.expect.verdict);
    await check(fixture);
  });
});

it('every folder of fixtures belongs to a fault', () => {
  expect([...fixtures.keys()].filter((id) => !faultIds().includes(id))).toEqual([]);
});

async function check(fixture: Fixture): Promise<void> {
  const { expect: wanted } = fixture;
  const faults = await Promise.all([fixture.id, ...fixture.with].map(loadFault));
  const report = diagnoseObjects(
    fixture.objects,
    parseScope(fixture.scope),
    { faults, remediations },
    { notRead: fixture.notRead },
  );
  const own = report.findings.filter((finding) => finding.fault === fixture.id);
  const unknown = report.unknown.filter((entry) => entry.fault === fixture.id);

  if (wanted.verdict === 'clear' || wanted.verdict === 'unknown') {
    expect(own.map((finding) => finding.summary)).toEqual([]);
    expect(unknown, JSON.stringify(unknown)).toHaveLength(wanted.verdict === 'clear' ? 0 : 1);
    return;
  }
  expect(unknown).toEqual([]);
  expect(own.map((finding) => finding.verdict)).toEqual(Array.from({ length: wanted.findings }, () => wanted.verdict));
  const [first] = own;
  if (!first) throw new Error('no finding');
  checkFinding(fixture, first);
  const cause = report.findings.find((finding) => finding.id === first.causedBy);
  if (wanted.causedBy !== undefined) expect(cause?.fault).toBe(wanted.causedBy);
  expect(new Set(own.flatMap((finding) => finding.offers.map((offer) => offer.remediation)))).toEqual(
    new Set(wanted.offers),
  );
  for (const finding of own) checkShape(finding);
}

function checkFinding({ expect: wanted }: Fixture, finding: SpokenFinding): void {
  if (wanted.subject !== undefined) expect(describeRef(finding.subject)).toBe(wanted.subject);
  expect([finding.subject, ...finding.involved].map(describeRef)).toEqual(expect.arrayContaining(wanted.involves));
  expect(finding.affected.map(describeRef)).toEqual(expect.arrayContaining(wanted.affects));
  if (wanted.reason !== undefined) expect(finding.reason).toBe(wanted.reason);
  if (wanted.recheck !== undefined) expect(finding.recheckAfterSeconds).toBe(wanted.recheck);
}

/** What every finding promises, whatever its fault. */
function checkShape(finding: SpokenFinding): void {
  expect(finding.involved.length).toBeLessThanOrEqual(20);
  expect(finding.evidence.length).toBeGreaterThan(0);
  for (const text of [finding.summary, finding.explanation]) {
    expect(text.trim()).not.toBe('');
    expect(text).not.toMatch(/undefined|NaN|\[object/);
  }
  if (finding.verdict === 'progress') expect(finding.recheckAfterSeconds).toBeGreaterThan(0);
  for (const offer of finding.offers) expect(offer.plan.length).toBeGreaterThan(0);
}
