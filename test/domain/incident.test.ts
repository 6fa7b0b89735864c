import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterDiagnosis,
  causeKey,
  causesOf,
  describeIncidentState,
  goesOn,
  type IncidentEvent,
  isOver,
  objectsOf,
  type StoredState,
  severityOf,
  shownState,
  step,
} from '../../src/domain/incident.ts';
import type { Finding, Report } from '../../src/domain/report.ts';
import { textIn, verbatim } from '../../src/domain/text.ts';

const node = { apiVersion: 'v1', kind: 'Node', namespace: null, name: 'n1', uid: 'u' };

function finding(change: Partial<Finding>): Finding {
  return {
    id: 'f1',
    fault: 'multi-attach-node-down',
    reason: null,
    verdict: 'found',
    severity: 'critical',
    causedBy: null,
    subject: node,
    involved: [],
    affected: [],
    summary: verbatim('a'),
    explanation: verbatim('b'),
    evidence: [],
    unread: [],
    offers: [],
    manual: [],
    ...change,
  };
}

function report(change: Partial<Report>): Report {
  return {
    version: 1,
    cluster: { name: 'prod', uid: 'c' },
    now: '2026-11-30T12:00:00Z',
    scope: { kind: 'Cluster', namespace: null, name: null },
    findings: [],
    unknown: [],
    unexplained: [],
    read: { requests: 1, objects: 1, bytes: 1, milliseconds: 1 },
    ...change,
  };
}

describe('an incident after a diagnosis', () => {
  it.each<[string, Partial<Report>, 'resolved' | 'diagnosed']>([
    ['that is clear is resolved', {}, 'resolved'],
    ['with nothing but information is resolved', { findings: [finding({ severity: 'info' })] }, 'resolved'],
    ['with trouble stays', { findings: [finding({})] }, 'diagnosed'],
    ['with progress stays', { findings: [finding({ verdict: 'progress', recheckAfterSeconds: 90 })] }, 'diagnosed'],
    ['that could not read something stays', { unknown: [{ fault: 'x', reason: verbatim('forbidden') }] }, 'diagnosed'],
    ['with something unexplained stays', { unexplained: [{ object: node, says: verbatim('deleting') }] }, 'diagnosed'],
  ])('%s', (_, change, state) => {
    expect(afterDiagnosis(report(change)).state).toBe(state);
  });

  it('is looked at again when the first of its timers ends, and not before', () => {
    const findings = [90, 40, 300].map((recheckAfterSeconds) => finding({ verdict: 'progress', recheckAfterSeconds }));
    expect(afterDiagnosis(report({ findings })).recheckSeconds).toBe(40);
    expect(afterDiagnosis(report({ findings: [finding({})] })).recheckSeconds).toBeUndefined();
  });

  it('has a line for people in each state', () => {
    const states = ['open', 'diagnosed', 'acting', 'resolved', 'joined'] as const;
    expect(new Set(states.map((state) => textIn(describeIncidentState(state), 'en'))).size).toBe(5);
  });

  const alerted = { origin: 'alert', isFiring: true, isStorage: false } as const;
  it.each<[string, Partial<Report>, Parameters<typeof afterDiagnosis>[1], 'resolved' | 'diagnosed', boolean]>([
    ['by an alert has no thread when all is well', {}, alerted, 'resolved', false],
    ['by an alert has one when there is trouble', { findings: [finding({})] }, alerted, 'diagnosed', true],
    [
      'by an alert has one for what is unexplained',
      { unexplained: [{ object: node, says: verbatim('x') }] },
      alerted,
      'diagnosed',
      true,
    ],
    [
      'by an alert has none when something could not be read and it need have no storage',
      { unknown: [{ fault: 'x', reason: verbatim('y') }] },
      alerted,
      'resolved',
      false,
    ],
    [
      'by an alert about storage has one when something could not be read',
      { unknown: [{ fault: 'x', reason: verbatim('y') }] },
      { ...alerted, isStorage: true },
      'diagnosed',
      true,
    ],
    [
      'by an alert that is over ends when nothing but silence is left',
      { unknown: [{ fault: 'x', reason: verbatim('y') }] },
      { ...alerted, isStorage: true, isFiring: false },
      'resolved',
      false,
    ],
    ['by a person always has one', {}, { origin: 'person', isFiring: false, isStorage: false }, 'resolved', true],
  ])('opened %s', (_, change, how, state, isWorthAThread) => {
    expect(afterDiagnosis(report(change), how)).toMatchObject({ state, isWorthAThread });
  });

  it('that no person watches is looked at again by itself', () => {
    expect(afterDiagnosis(report({ findings: [finding({})] }), alerted).recheckSeconds).toBe(300);
    const soon = finding({ verdict: 'progress', recheckAfterSeconds: 40 });
    expect(afterDiagnosis(report({ findings: [soon] }), alerted).recheckSeconds).toBe(40);
  });
});

const pod = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name: 'db-0', uid: 'p' };
const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data-db-0', uid: 'c' };

describe('the causes of a report', () => {
  it('are its roots, trouble before progress, effects and information left out', () => {
    const findings = [
      finding({ id: 'f1', verdict: 'progress', fault: 'a' }),
      finding({ id: 'f2', fault: 'b' }),
      finding({ id: 'f3', fault: 'c', causedBy: 'f2' }),
      finding({ id: 'f4', fault: 'd', severity: 'info' }),
    ];
    expect(causesOf(report({ findings })).map(({ fault }) => fault)).toEqual(['b', 'a']);
  });

  it('are told apart by uid, and by name where there is no object', () => {
    const key = (change: object) => causeKey({ fault: 'a', subject: { ...pod, ...change } });
    expect(key({ uid: 'other' })).not.toBe(key({}));
    expect(key({ name: 'renamed' })).toBe(key({}));
    expect(key({ uid: null, name: 'x' })).not.toBe(key({ uid: null, name: 'y' }));
    expect(causeKey({ fault: 'b', subject: pod })).not.toBe(key({}));
  });

  it('come with who suffers and what stands on the chain, each object once', () => {
    const findings = [finding({ affected: [pod], involved: [node, pod, claim] }), finding({ affected: [pod] })];
    const { affected, involved } = objectsOf(report({ findings }));
    expect([affected, involved].map((refs) => refs.map(({ name }) => name))).toEqual([['db-0'], ['n1', 'data-db-0']]);
  });

  it.each([
    [[finding({ severity: 'warning' }), finding({})], 'critical'],
    [[finding({ severity: 'warning' })], 'warning'],
    [[finding({ severity: 'info', verdict: 'progress' })], 'info'],
    [[finding({ severity: 'info' })], null],
  ] as const)('have the severity of the worst', (findings, severity) => {
    expect(severityOf(report({ findings }))).toBe(severity);
  });
});

describe('of two incidents with one cause', () => {
  const one = { id: 'a', openedAt: '2026-11-30T12:00:00Z', isSeen: true };
  it.each([
    [
      'the one that people see goes on, though it is younger',
      { ...one, isSeen: false },
      { ...one, id: 'b', openedAt: '2026-11-30T13:00:00Z' },
      'b',
    ],
    ['the older one goes on, when both are seen', { ...one, id: 'b', openedAt: '2026-11-30T11:00:00Z' }, one, 'b'],
    ['one goes on, when both are as old', one, { ...one, id: 'b' }, 'a'],
  ])('%s, whichever is asked first', (_, first, second, id) => {
    expect(goesOn(first, second).id).toBe(id);
    expect(goesOn(second, first).id).toBe(id);
  });
});

/** What happens around one trouble, as commands; minutes go by between them. */
type Happening = 'alert' | 'over' | 'trouble' | 'clear' | 'approve' | 'finish' | 'ask' | 'hour' | 'join';
const happening = fc.constantFrom<Happening>(
  'alert',
  'over',
  'trouble',
  'clear',
  'approve',
  'finish',
  'ask',
  'hour',
  'join',
);

/** The plain model: an incident is a thread that stands, is over since some minutes, or went elsewhere. */
interface Plain {
  thread: 'open' | 'over' | 'elsewhere';
  overFor: number;
  isActing: boolean;
}

describe('the state machine', () => {
  it('follows the plain model, in whatever order things happen', () => {
    fc.assert(
      fc.property(fc.array(happening, { maxLength: 60 }), (happenings) => {
        let state: StoredState = 'open';
        const plain: Plain = { thread: 'open', overFor: 0, isActing: false };
        const apply = (event: IncidentEvent) => {
          const moved = step({ state: state, isActing: plain.isActing, resolvedForMs: plain.overFor * 60_000 }, event);
          if (moved) ({ state } = moved);
          return moved;
        };
        for (const one of happenings) {
          if (plain.thread === 'over') plain.overFor += 1;
          switch (one) {
            case 'alert': {
              const isBack = plain.thread === 'open' || (plain.thread === 'over' && plain.overFor <= 60);
              expect(apply({ kind: 'alerted' }) !== undefined).toBe(isBack);
              if (isBack) plain.thread = 'open';
              break;
            }
            case 'ask':
              expect(apply({ kind: 'asked' }) !== undefined).toBe(plain.thread === 'open');
              break;
            case 'over':
              expect(apply({ kind: 'calmed' }) !== undefined).toBe(plain.thread === 'open');
              break;
            case 'trouble':
              expect(apply({ kind: 'diagnosed', isClear: false }) !== undefined).toBe(plain.thread === 'open');
              break;
            case 'clear':
              apply({ kind: 'diagnosed', isClear: true });
              if (plain.thread === 'open' && !plain.isActing) plain.thread = 'over';
              break;
            case 'approve':
              plain.isActing = plain.thread === 'open';
              break;
            case 'finish':
              plain.isActing = false;
              break;
            case 'hour':
              if (plain.thread === 'over') plain.overFor += 60;
              break;
            case 'join':
              if (plain.thread === 'open') {
                apply({ kind: 'joined' });
                plain.thread = 'elsewhere';
                plain.isActing = false;
              }
              break;
            default:
              throw new Error(one satisfies never);
          }
          if (plain.thread !== 'over') plain.overFor = 0;
          const expected = { open: ['open', 'diagnosed'], over: ['resolved'], elsewhere: ['joined'] }[plain.thread];
          expect(expected).toContain(state);
          const shown = shownState(state, plain.isActing);
          expect(shown === 'acting').toBe(plain.isActing);
          expect(isOver(shown)).toBe(plain.thread !== 'open');
        }
      }),
      { numRuns: 2000 },
    );
  });
});
