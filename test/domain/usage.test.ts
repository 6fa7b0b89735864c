import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { largerSizeOf } from '../../src/domain/expansion.ts';
import { verbatim } from '../../src/domain/text.ts';
import {
  type ClaimUsage,
  claimUsage,
  combineUsage,
  isFillingUp,
  type Measure,
  msToFull,
  usageDocument,
  usageOfAlert,
} from '../../src/domain/usage.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-11-30T12:00:00Z');

/** Falls, or rises, evenly over the last six hours. */
function measure(free: number, perHour = 0): Measure {
  const history = Array.from({ length: 25 }, (_, i) => {
    const hoursAgo = (24 - i) / 4;
    return { at: NOW - hoursAgo * HOUR, free: free - perHour * -hoursAgo };
  });
  return { free, capacity: 100, history };
}

describe('a pace', () => {
  it.each<[string, Measure, number | undefined]>([
    ['that falls evenly says when it is full', measure(0.1, 0.01), 10 * HOUR],
    ['that rises is none', measure(0.1, -0.01), undefined],
    ['that stands still is none', measure(0.1), undefined],
    ['of three points is none', { ...measure(0.1, 0.01), history: measure(0.1, 0.01).history.slice(-3) }, undefined],
    ['of half an hour is none', { free: 0.1, history: measure(0.1, 0.01).history.slice(-3) }, undefined],
    ['of nothing is none', { free: 0.1, history: [] }, undefined],
  ])('%s', (_, given, wanted) => {
    const found = msToFull(given);
    if (wanted === undefined) expect(found).toBeUndefined();
    else expect(found).toBeCloseTo(wanted, -3);
  });

  it('looks back six hours and no further', () => {
    const recent = measure(0.1);
    const before = [{ at: NOW - 20 * HOUR, free: 0.9 }];
    expect(msToFull({ ...recent, history: [...before, ...recent.history] })).toBeUndefined();
  });
});

describe('runs full', () => {
  it.each<[string, Measure | undefined, boolean]>([
    ['below 3 %, whatever the pace', measure(0.029, -0.1), true],
    ['not at 3 %', measure(0.03), false],
    ['below 15 % when it is full in two days', measure(0.14, 0.003), true],
    ['not when it takes a week', measure(0.14, 0.0008), false],
    ['not at 15 %, however fast', measure(0.15, 0.1), false],
    ['when a critical alert says so without a number', { free: 0.03, isBound: true, history: [] }, true],
    ['when an alert says: within four days', { free: 0.15, isBound: true, isSaidToFill: true, history: [] }, true],
    ['not without any measure', undefined, false],
  ])('%s', (_, given, wanted) => {
    expect(isFillingUp(given)).toBe(wanted);
  });
});

const alert = {
  name: 'KubePersistentVolumeFillingUp',
  severity: 'critical' as 'critical' | 'warning',
  labels: { namespace: 'shop', persistentvolumeclaim: 'data' },
  annotations: {},
  values: {},
  startsAt: '2026-11-30T11:00:00Z',
};

describe('an alert about a volume that runs full', () => {
  it.each([
    ['is only 2.5% free.', 'KubePersistentVolumeFillingUp', 'critical', { bytes: { free: 0.025, history: [] } }],
    [
      'is expected to fill up within four days. Currently 12.5% is available.',
      'KubePersistentVolumeFillingUp',
      'warning',
      { bytes: { free: 0.125, history: [], isSaidToFill: true } },
    ],
    [
      'only has 1e-02% free inodes.',
      'KubePersistentVolumeInodesFillingUp',
      'critical',
      { inodes: { free: 0.0001, history: [] } },
    ],
    [
      'Currently 7% of its inodes are free.',
      'KubePersistentVolumeInodesFillingUp',
      'warning',
      { inodes: { free: 0.07, history: [], isSaidToFill: true } },
    ],
    [
      'says nothing',
      'KubePersistentVolumeFillingUp',
      'critical',
      { bytes: { free: 0.03, isBound: true, history: [] } },
    ],
    [
      'of its old name',
      'KubePersistentVolumeFullInFourDays',
      'critical',
      { bytes: { free: 0.15, isBound: true, history: [], isSaidToFill: true } },
    ],
  ] as const)('%s', (description, name, severity, wanted) => {
    expect(usageOfAlert({ ...alert, name, severity, annotations: { description } })).toEqual({
      namespace: 'shop',
      name: 'data',
      at: Date.parse(alert.startsAt),
      source: 'alert',
      ...wanted,
    });
  });

  it('takes the one share that Grafana measured, and no threshold', () => {
    expect(usageOfAlert({ ...alert, values: { A: 0.021, C: 1 } })?.bytes).toEqual({ free: 0.021, history: [] });
    expect(usageOfAlert({ ...alert, values: { A: 0.021, B: 0.5 } })?.bytes?.isBound).toBe(true);
  });

  it('says nothing about a claim that it does not name, and other alerts say nothing at all', () => {
    expect(usageOfAlert({ ...alert, labels: { namespace: 'shop' } })).toBeUndefined();
    expect(usageOfAlert({ ...alert, labels: { ...alert.labels, namespace: 'a"b' } })).toBeUndefined();
    expect(usageOfAlert({ ...alert, name: 'KubePersistentVolumeErrors' })).toBeUndefined();
    expect(usageOfAlert({ ...alert, name: 'constructor' })).toBeUndefined();
  });
});

describe('what is measured and what alerts say', () => {
  const usage = (name: string, source: ClaimUsage['source'], free: number, at = 0): ClaimUsage => ({
    namespace: 'shop',
    name,
    at,
    source,
    bytes: { free, history: [] },
  });
  const frees = (reading: ReturnType<typeof combineUsage>) =>
    Object.fromEntries(reading.claims.map(({ name, bytes }) => [name, bytes?.free]));

  it('the measurement wins, and alerts fill the gaps', () => {
    const reading = combineUsage(
      { claims: [usage('a', 'prometheus', 0.5)] },
      [usage('a', 'alert', 0.01), usage('b', 'alert', 0.02)],
      {
        isWhole: false,
      },
    );
    expect(frees(reading)).toEqual({ a: 0.5, b: 0.02 });
  });

  it('where everything nearly full was measured, an alert about something else is late with its end', () => {
    expect(combineUsage({ claims: [] }, [usage('b', 'alert', 0.02)], { isWhole: true }).claims).toEqual([]);
  });

  it('a Prometheus that does not answer leaves the alerts, and its reason', () => {
    const reading = combineUsage({ claims: [], unread: verbatim('no answer') }, [usage('b', 'alert', 0.02)], {
      isWhole: true,
    });
    expect(reading).toMatchObject({ unread: verbatim('no answer'), claims: [{ name: 'b' }] });
  });

  it('of two alerts about one claim the lower share counts, and both of its kinds', () => {
    const inodes: ClaimUsage = {
      namespace: 'shop',
      name: 'a',
      at: 5,
      source: 'alert',
      inodes: { free: 0.01, history: [] },
    };
    const reading = combineUsage(undefined, [usage('a', 'alert', 0.12, 9), usage('a', 'alert', 0.02, 1), inodes], {
      isWhole: false,
    });
    expect(reading.claims).toMatchObject([{ at: 9, bytes: { free: 0.02 }, inodes: { free: 0.01 } }]);
  });
});

it('a saved usage is read back as it was', () => {
  const point = fc.record({ at: fc.nat(2 ** 40), free: fc.double({ min: 0, max: 1, noNaN: true }) });
  const one = fc.record(
    {
      free: fc.double({ min: 0, max: 1, noNaN: true }),
      capacity: fc.integer({ min: 1 }),
      isBound: fc.boolean(),
      isSaidToFill: fc.boolean(),
      history: fc.array(point, { maxLength: 5 }),
    },
    { requiredKeys: ['free', 'history'] },
  );
  const usage = fc.record(
    {
      namespace: fc.string(),
      name: fc.string(),
      at: fc.nat(2 ** 40),
      source: fc.constantFrom('prometheus' as const, 'alert' as const),
      bytes: one,
      inodes: one,
    },
    { requiredKeys: ['namespace', 'name', 'at', 'source'] },
  );
  fc.assert(
    fc.property(usage, (given) => {
      expect(claimUsage.parse(JSON.parse(JSON.stringify(usageDocument(given))))).toEqual(
        JSON.parse(JSON.stringify(given)),
      );
    }),
  );
});

describe('the size to grow to', () => {
  it.each([
    ['20Gi', '30Gi'],
    ['10Gi', '15Gi'],
    ['1Gi', '2Gi'],
    ['5Gi', '8Gi'],
    ['500Mi', '750Mi'],
    ['1Ti', '1536Gi'],
    ['much', undefined],
  ])('of %s is %s', (capacity, wanted) => {
    expect(largerSizeOf({ capacity })).toBe(wanted);
  });

  it('leaves a third free and is never more than twice the present one', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 24 }), (mi) => {
        const to = largerSizeOf({ capacity: `${mi}Mi` }) ?? '';
        const size = Number.parseInt(to, 10) * (to.endsWith('Gi') ? 1024 : 1);
        expect(size).toBeGreaterThanOrEqual(mi * 1.5);
        expect(size).toBeLessThanOrEqual(mi * 2);
      }),
    );
  });
});
