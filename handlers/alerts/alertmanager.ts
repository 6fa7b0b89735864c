import { defineAlertSource } from '../../src/surface.ts';
import { parseGroup } from '../alert-group.ts';

/**
 * Prometheus Alertmanager, webhook version 4. It repeats after a 5xx only.
 * https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
 */
export const alertmanager = defineAlertSource({
  id: 'alertmanager',
  check: { kind: 'token' },
  parse: (value) => parseGroup(value, '4'),
});
