import { describe, expect, it } from 'vitest';
import type { Report } from '../../src/domain/report.ts';
import { reportIn, storedReport } from '../../src/domain/spoken.ts';
import type { Word } from '../../src/domain/text.ts';

const object = { apiVersion: 'v1', kind: 'Node', namespace: null, name: 'n3', uid: 'n' };

/** A report whose every sentence is made by `say`, and whose data looks like sentences. */
function report<S>(say: (words: string) => S): Report<S> {
  return {
    version: 1,
    cluster: { name: 'prod', uid: 'c' },
    now: '2026-11-30T12:00:00Z',
    scope: { kind: 'Cluster', namespace: null, name: null },
    findings: [
      {
        id: 'f1',
        fault: 'multi-attach-node-down',
        reason: null,
        verdict: 'found',
        severity: 'critical',
        causedBy: null,
        subject: object,
        involved: [],
        affected: [],
        summary: say('summary'),
        explanation: say('explanation'),
        evidence: [{ object, path: 'metadata.labels', value: '{"en":"a","zh":"b"}', says: say('evidence') }],
        unread: [{ resource: 'leases', reason: say('unread') }],
        offers: [
          {
            remediation: 'delete-pod',
            risk: 'low',
            params: { en: 'a', zh: 'b' },
            dataLoss: 'none',
            requires: [],
            blocked: say('blocked'),
            plan: [],
            digest: null,
            undo: say('undo'),
          },
        ],
        manual: [{ says: say('manual') }],
      },
    ],
    unknown: [{ fault: 'x', reason: say('unknown') }],
    unexplained: [{ object, says: say('unexplained') }],
    read: { requests: 1, objects: 1, bytes: 1, milliseconds: 1 },
  };
}

const both = (words: string) => ({ en: words, zh: `（${words}）` });

describe('a report', () => {
  it.each(['en', 'zh'] as const)('has every sentence in %s when it is spoken, and its data untouched', (language) => {
    expect(reportIn(report(both), language)).toEqual(report((words) => both(words)[language]));
  });

  it('of before the second language is read, and says the same in both', () => {
    const old = report<Word>((words) => words);
    expect(reportIn(storedReport(old), 'zh')).toEqual(old);
    expect(storedReport(report<Word>(both))).toEqual(report(both));
  });
});
