import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { alertSources } from '../../handlers/alerts/index.ts';
import { pagerduty } from '../../handlers/alerts/pagerduty.ts';
import { subjectOf } from '../../src/domain/alert.ts';
import { describeScope } from '../../src/domain/scope.ts';
import type { ParsedAlerts } from '../../src/surface.ts';

/** Bodies as the senders' own documentation shows them. */
const alertmanagerBody = {
  version: '4',
  groupKey: '{}:{alertname="KubePodNotReady"}',
  truncatedAlerts: 2,
  status: 'firing',
  receiver: 'k8s-storage',
  groupLabels: { alertname: 'KubePodNotReady' },
  commonLabels: {},
  commonAnnotations: {},
  externalURL: 'http://alertmanager',
  alerts: [
    {
      status: 'firing',
      labels: { alertname: 'KubePodNotReady', namespace: 'shop', pod: 'db-0' },
      annotations: {},
      startsAt: '2026-11-30T12:00:00Z',
      endsAt: '0001-01-01T00:00:00Z',
      generatorURL: '',
      fingerprint: 'a1',
    },
    { status: 'firing', labels: {}, startsAt: 'x' },
    {
      status: 'resolved',
      labels: { alertname: 'KubePodNotReady', namespace: 'shop', pod: 'db-1' },
      annotations: {},
      startsAt: '2026-11-30T11:00:00Z',
      endsAt: '2026-11-30T11:30:00Z',
      generatorURL: '',
      fingerprint: 'a2',
    },
  ],
};

const grafanaBody = {
  receiver: 'k8s-storage',
  status: 'firing',
  orgId: 1,
  version: '1',
  groupKey: '{}:{}',
  truncatedAlerts: 0,
  title: '[FIRING:1]',
  state: 'alerting',
  message: '',
  groupLabels: {},
  commonLabels: {},
  commonAnnotations: {},
  externalURL: 'https://play.grafana.org/',
  alerts: [
    {
      status: 'firing',
      labels: { alertname: 'KubePersistentVolumeFillingUp', namespace: 'shop', persistentvolumeclaim: 'data-db-0' },
      annotations: {},
      startsAt: '2026-11-30T12:00:00.157076+02:00',
      endsAt: '0001-01-01T00:00:00Z',
      generatorURL: 'https://play.grafana.org/alerting/1/edit',
      fingerprint: 'c6eadffa33fcdf37',
      silenceURL: '',
      dashboardURL: '',
      panelURL: '',
      values: { B: 2.5, C: 1 },
    },
  ],
};

const pagerdutyBody = (type: string, title: string, more: object = {}) => ({
  event: {
    id: '01DEN4HPBQAAAG05V5QQYBRZMF',
    event_type: type,
    resource_type: 'incident',
    occurred_at: '2026-11-30T12:30:00.169Z',
    agent: { id: 'PLH1HKV', type: 'user_reference' },
    client: { name: 'PagerDuty' },
    data: {
      id: 'PGR0VU2',
      type: 'incident',
      number: 2,
      status: 'triggered',
      incident_key: 'd3640fbd41094207a1c11e58e46b1662',
      created_at: '2026-11-30T12:00:00Z',
      title,
      service: { id: 'PF9KMXH', summary: 'Storage', type: 'service_reference' },
      urgency: 'high',
      priority: { id: 'PSO75BM', summary: 'P1', type: 'priority_reference' },
      ...more,
    },
  },
});

function sourceOf(id: string) {
  const source = alertSources.find((one) => one.id === id);
  if (!source) throw new Error(`no source ${id}`);
  return source;
}

/** What was read, in one line each. */
function linesOf(parsed: ParsedAlerts): readonly string[] {
  if (parsed.kind === 'wrong') return [`wrong: ${parsed.says}`];
  return parsed.entries.map((entry) => {
    if (entry.kind === 'unclear') return 'unclear';
    const subject = subjectOf(entry.alert);
    const about = subject.kind === 'subject' ? describeScope(subject.scope) : subject.kind;
    return `${entry.alert.status} ${entry.alert.name} ${about} since ${entry.alert.startsAt}`;
  });
}

describe('Alertmanager', () => {
  it('sends a group: what can be read is taken, what cannot is kept', () => {
    const parsed = sourceOf('alertmanager').parse(alertmanagerBody);
    expect(parsed).toMatchObject({ truncated: 2 });
    expect(linesOf(parsed)).toEqual([
      'firing KubePodNotReady Pod shop/db-0 since 2026-11-30T12:00:00.000Z',
      'unclear',
      'resolved KubePodNotReady Pod shop/db-1 since 2026-11-30T11:00:00.000Z',
    ]);
  });
});

describe('Grafana', () => {
  it('sends a group with the values that it measured', () => {
    const parsed = sourceOf('grafana').parse(grafanaBody);
    expect(linesOf(parsed)).toEqual([
      'firing KubePersistentVolumeFillingUp PersistentVolumeClaim shop/data-db-0 since 2026-11-30T10:00:00.157Z',
    ]);
    expect(parsed).toMatchObject({ entries: [{ alert: { values: { B: 2.5, C: 1 } } }] });
  });
});

describe('PagerDuty', () => {
  const details = 'Labels:\n - alertname = KubePersistentVolumeErrors\n - persistentvolume = pvc-1\nAnnotations:\n';
  it.each([
    [
      'a title with labels',
      pagerdutyBody('incident.triggered', '[FIRING:1] KubePodNotReady namespace=shop pod=db-0'),
      'firing KubePodNotReady Pod shop/db-0 since 2026-11-30T12:00:00.000Z',
    ],
    [
      'the details of Alertmanager',
      pagerdutyBody('incident.triggered', 'Trouble', { body: { details: { firing: details } } }),
      'firing KubePersistentVolumeErrors PersistentVolume pvc-1 since 2026-11-30T12:00:00.000Z',
    ],
    [
      'details as an object',
      pagerdutyBody('incident.triggered', 'Trouble', { custom_details: { namespace: 'shop', statefulset: 'db' } }),
      'firing Trouble StatefulSet shop/db since 2026-11-30T12:00:00.000Z',
    ],
    [
      'its end',
      pagerdutyBody('incident.resolved', 'KubePodNotReady namespace=shop pod=db-0'),
      'resolved KubePodNotReady Pod shop/db-0 since 2026-11-30T12:00:00.000Z',
    ],
    [
      'its return, a firing of its own',
      pagerdutyBody('incident.reopened', 'KubePodNotReady namespace=shop pod=db-0'),
      'firing KubePodNotReady Pod shop/db-0 since 2026-11-30T12:30:00.169Z',
    ],
    [
      'a title that names nothing',
      pagerdutyBody('incident.triggered', 'A little bump in the road'),
      'firing A notStorage since 2026-11-30T12:00:00.000Z',
    ],
  ])('tells an incident by %s', (_, body, line) => {
    expect(linesOf(pagerduty.parse(body))).toEqual([line]);
  });

  it.each(['incident.acknowledged', 'incident.priority_updated', 'pagey.ping', 'service.updated'])(
    'says nothing about the trouble by %s',
    (type) => {
      expect(linesOf(pagerduty.parse(pagerdutyBody(type, 'x')))).toEqual([]);
    },
  );

  const secrets = { token: undefined, pagerduty: ['old-secret', 'new-secret'] };
  const body = Buffer.from(JSON.stringify(pagerdutyBody('incident.triggered', 'x')));
  const sign = (secret: string, over: Uint8Array = body) =>
    `v1=${createHmac('sha256', secret).update(over).digest('hex')}`;
  const isSigned = (header: string, over: Uint8Array = body) => {
    if (pagerduty.check.kind !== 'signature') throw new Error('PagerDuty signs');
    return pagerduty.check.isSigned(header, over, secrets);
  };

  it.each([
    ['by one secret', sign('old-secret')],
    ['by the other', sign('new-secret')],
    ['while a secret is exchanged', `${sign('unknown')},${sign('new-secret')}`],
  ])('is believed when it is signed %s', (_, header) => {
    expect(isSigned(header)).toBe(true);
  });

  it.each([
    ['not signed', ''],
    ['signed by a stranger', sign('unknown')],
    ['signed in another version', sign('old-secret').replace('v1', 'v0')],
    ['signed shorter', sign('old-secret').slice(0, -2)],
    ['signed in other letters', sign('old-secret').toUpperCase()],
  ])('is not believed when it is %s', (_, header) => {
    expect(isSigned(header)).toBe(false);
  });

  it('is not believed when one byte differs, blanks included', () => {
    expect(isSigned(sign('old-secret'), Buffer.concat([body, Buffer.from(' ')]))).toBe(false);
  });
});

describe('every source', () => {
  it.each(alertSources.map((source) => [source.id, source] as const))(
    '%s says what is wrong with a body that cannot be read, and throws for none',
    (_, source) => {
      expect(source.parse({ version: '3', alerts: [] })).toMatchObject({ kind: 'wrong' });
      fc.assert(
        fc.property(fc.jsonValue(), (value) => {
          expect(['alerts', 'wrong']).toContain(source.parse(value).kind);
        }),
      );
    },
  );
});
