/** Alerts as Alertmanager sends them, and a way to send them. */

export const ALERT_TOKEN = 'token-of-the-alert-tests';

export interface TestAlert {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly startsAt?: string;
  readonly status?: 'firing' | 'resolved';
  readonly endsAt?: string;
}

const BEGAN = '2026-11-30T12:00:00.000Z';

/** One alert in the words of the webhook; its fingerprint follows from its labels, as Alertmanager's does. */
export function written({ name, labels, startsAt = BEGAN, status = 'firing', endsAt }: TestAlert) {
  const all = { alertname: name, severity: 'warning', ...labels };
  return {
    status,
    labels: all,
    annotations: { summary: `${name} fires` },
    startsAt,
    endsAt:
      endsAt ?? (status === 'resolved' ? new Date(Date.parse(startsAt) + 1000).toISOString() : '0001-01-01T00:00:00Z'),
    generatorURL: 'http://prometheus.example.com/graph',
    fingerprint: Buffer.from(JSON.stringify(Object.entries(all).toSorted()))
      .toString('base64url')
      .slice(0, 200),
  };
}

/** A whole webhook. */
export function group(alerts: readonly unknown[]) {
  return {
    version: '4',
    groupKey: '{}:{}',
    truncatedAlerts: 0,
    status: 'firing',
    receiver: 'k8s-storage',
    groupLabels: {},
    commonLabels: {},
    commonAnnotations: {},
    externalURL: 'http://alertmanager.example.com',
    alerts,
  };
}

export async function send(
  address: string,
  body: unknown,
  options: {
    readonly path?: string;
    readonly token?: string;
    readonly headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<{ readonly status: number; readonly error: string; readonly detail: string }> {
  const response = await fetch(`${address}${options.path ?? '/alerts/alertmanager'}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${options.token ?? ALERT_TOKEN}`,
      ...options.headers,
    },
    body: typeof body === 'string' || body instanceof Blob ? body : JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  const text = (key: string) =>
    String(typeof answer === 'object' && answer !== null ? (Reflect.get(answer, key) ?? '') : '');
  return { status: response.status, error: text('error'), detail: text('detail') };
}
