import { z } from 'zod';
import { deliveryKeyOf, readAlert } from '../src/domain/alert.ts';
import type { ParsedAlerts } from '../src/surface.ts';

/** A group of alerts as Alertmanager writes it, and Grafana after it. One bad alert never costs the others. */
export function parseGroup(value: unknown, version: string): ParsedAlerts {
  const group = z.object({
    version: z.literal(version, { error: `is not ${version}: webhooks of another version are not read` }),
    alerts: z.array(z.unknown()),
    truncatedAlerts: z.number().default(0),
  });
  const read = group.safeParse(value);
  if (!read.success) return wrongOf(read.error);
  const entries = read.data.alerts.map(readAlert);
  return { kind: 'alerts', key: deliveryKeyOf(entries), entries, truncated: read.data.truncatedAlerts };
}

/** What is wrong with a body as a whole, by the first field that is not as it should be. */
export function wrongOf({ issues: [issue] }: z.ZodError): ParsedAlerts {
  return { kind: 'wrong', says: `${issue?.path.join('.') || 'the body'} ${issue?.message ?? 'cannot be read'}` };
}
