import { describe, expect, it } from 'vitest';
import { afterDiagnosis, describeIncidentState } from '../../src/domain/incident.ts';
import type { Finding, Report } from '../../src/domain/report.ts';

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
    summary: 'a',
    explanation: 'b',
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
    ['that could not read something stays', { unknown: [{ fault: 'x', reason: 'forbidden' }] }, 'diagnosed'],
    ['with something unexplained stays', { unexplained: [{ object: node, says: 'deleting' }] }, 'diagnosed'],
  ])('%s', (_, change, state) => {
    expect(afterDiagnosis(report(change)).state).toBe(state);
  });

  it('is looked at again when the first of its timers ends, and not before', () => {
    const findings = [90, 40, 300].map((recheckAfterSeconds) => finding({ verdict: 'progress', recheckAfterSeconds }));
    expect(afterDiagnosis(report({ findings })).recheckSeconds).toBe(40);
    expect(afterDiagnosis(report({ findings: [finding({})] })).recheckSeconds).toBeUndefined();
  });

  it('has a line for people in each state', () => {
    expect(new Set((['open', 'diagnosed', 'resolved'] as const).map(describeIncidentState)).size).toBe(3);
  });
});
