import { createHmac, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import { type AlertEntry, readAlert, unclear } from '../../src/domain/alert.ts';
import { defineAlertSource } from '../../src/surface.ts';
import { wrongOf } from '../alert-group.ts';
import { labelsOf, nameOf, textOf } from '../alert-text.ts';

/** https://developer.pagerduty.com/docs/webhooks-overview */
const body = z.object({
  event: z.object({
    id: z.string().min(1).max(200),
    event_type: z.string(),
    occurred_at: z.string(),
    data: z.unknown(),
  }),
});

const incident = z.object({
  id: z.string().min(1),
  title: z.string(),
  created_at: z.string().optional(),
  urgency: z.string().nullish(),
  priority: z.object({ summary: z.string() }).nullish(),
  body: z.unknown().optional(),
  custom_details: z.unknown().optional(),
});

/** Events that say that the trouble is there, or gone; the others are about people. */
const statusOfEvent: Readonly<Record<string, 'firing' | 'resolved'>> = {
  'incident.triggered': 'firing',
  'incident.reopened': 'firing',
  'incident.resolved': 'resolved',
};

/** PagerDuty's webhook version 3. A subscription has a secret; while one is exchanged, both sign. */
export const pagerduty = defineAlertSource({
  id: 'pagerduty',
  check: {
    kind: 'signature',
    header: 'x-pagerduty-signature',
    isSigned(header, raw, { pagerduty: secrets }) {
      const given = header.split(',').flatMap((part) => /^\s*v1=([0-9a-f]{64})\s*$/.exec(part)?.[1] ?? []);
      const right = secrets.map((secret) => createHmac('sha256', secret).update(raw).digest());
      return given.some((hex) => right.some((digest) => timingSafeEqual(digest, Buffer.from(hex, 'hex'))));
    },
  },
  parse(value) {
    const read = body.safeParse(value);
    if (!read.success) return wrongOf(read.error);
    const { event } = read.data;
    const status = Object.hasOwn(statusOfEvent, event.event_type) ? statusOfEvent[event.event_type] : undefined;
    const entries = status === undefined ? [] : [entryOf(event.data, status, event.event_type, event.occurred_at)];
    return { kind: 'alerts', key: event.id, entries, truncated: 0 };
  },
});

/**
 * PagerDuty's incident as an alert. One that is opened again is a firing of its own, which began at that moment; a
 * resolution ends every firing that began before it.
 */
function entryOf(data: unknown, status: 'firing' | 'resolved', type: string, occurredAt: string): AlertEntry {
  const read = incident.safeParse(data);
  if (!read.success) return unclear('the incident lacks its id or title', data);
  const { id, title, created_at: createdAt, urgency, priority } = read.data;
  const labels = {
    ...labelsOf(title),
    ...labelsOf(textOf(read.data.body)),
    ...labelsOf(textOf(read.data.custom_details)),
  };
  return readAlert({
    status,
    labels: {
      severity: priority?.summary ?? (urgency === 'low' ? 'warning' : 'critical'),
      ...labels,
      alertname: labels['alertname'] ?? nameOf(title),
    },
    annotations: { summary: title },
    startsAt: type === 'incident.reopened' ? occurredAt : (createdAt ?? occurredAt),
    endsAt: status === 'resolved' ? occurredAt : '',
    fingerprint: id,
  });
}
