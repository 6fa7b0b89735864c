import { defineAlertSource } from '../../src/surface.ts';
import { parseGroup } from '../alert-group.ts';

/**
 * Grafana Alerting's webhook contact point: Alertmanager's alerts, with the values that were measured.
 * https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
 */
export const grafana = defineAlertSource({
  id: 'grafana',
  check: { kind: 'token' },
  parse: (value) => parseGroup(value, '1'),
});
