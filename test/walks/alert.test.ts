import { createHmac } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { ALERT_TOKEN, group, send, type TestAlert, written } from '../support/alerts.ts';
import { channel, type House, startHouse, until, wordsOf } from '../support/house.ts';

/** Alerts about the incident of the playground: node n1 is down, and everything that was on it suffers. */
const pod = (name: string, more: Partial<TestAlert> = {}): TestAlert => ({
  name: 'KubePodNotReady',
  labels: { namespace: 'shop', pod: name },
  ...more,
});
const PAGERDUTY_SECRET = 'a-secret-of-pagerduty';

let house: House;

beforeAll(async () => {
  house = await startHouse('incident', {
    SLACK_INCIDENT_CHANNEL: channel,
    ALERT_TOKEN,
    SCAN_INTERVAL: '0',
    PAGERDUTY_SECRETS: `older-secret-of-pagerduty,${PAGERDUTY_SECRET}`,
  });
});

const fire = (...alerts: readonly TestAlert[]) => send(house.address, group(alerts.map(written)));
/** What the one thread's first message says now. */
const says = () => heads().map(wordsOf).join('\n---\n');
const heads = () => house.slack.messages(channel).filter((message) => !message.threadTs);

describe('alerts about effects of one cause', () => {
  it('make one thread, diagnosed, that names the cause and every alert', async () => {
    expect(await fire(pod('db-0'), { name: 'KubeNodeNotReady', labels: { node: 'n1' } })).toMatchObject({
      status: 202,
    });
    const head = await house.saw(/Node n1 has been down/);
    expect(
      await fire({ name: 'KubeStatefulSetReplicasMismatch', labels: { namespace: 'shop', statefulset: 'db' } }),
    ).toMatchObject({ status: 202 });
    await until(() => (/KubeStatefulSetReplicasMismatch/.test(says()) ? true : undefined), 'the third alert', says);
    expect(heads().map(({ ts }) => ts)).toEqual([head.ts]);
    expect(says()).toMatch(/KubeNodeNotReady Node n1[\s\S]*/);
  });

  it('offer the repair with nobody as requester, and no alert votes', async () => {
    const finding = await house.saw(/Repair: Taint n1 out of service/);
    expect(wordsOf(finding)).toMatch(/0 of 2 approvals/);
  });
});

describe('an alert about something whose storage is well', () => {
  it('opens no thread', async () => {
    const before = heads().length;
    expect(
      await fire({
        name: 'KubeDeploymentReplicasMismatch',
        labels: { namespace: 'kube-system', deployment: 'csi-disk-controller' },
      }),
    ).toMatchObject({ status: 202 });
    // Something else afterwards shows that this was looked at.
    await house.say('dana', '/k8s-storage incidents');
    await house.saw(/incidents? (is|are) open/i, 'dana');
    expect(heads()).toHaveLength(before);
  });
});

describe('what is sent wrong', () => {
  const good = () => JSON.stringify(group([written(pod('db-9'))]));
  it.each([
    ['without a token', good, { headers: { authorization: '' } }, 401],
    ['with a wrong token', good, { token: `${ALERT_TOKEN}x` }, 401],
    ['to a source that there is not', good, { path: '/alerts/nagios' }, 404],
    ['about a cluster that there is not', good, { path: '/alerts/alertmanager/mars' }, 404],
    ['that is no JSON', () => '{"version":', {}, 400],
    ['that is no UTF-8', () => new Blob([new Uint8Array([0xff, 0xfe])]), {}, 400],
    ['of another version', () => JSON.stringify({ version: '3', alerts: [] }), {}, 400],
    ['that nests without end', () => '['.repeat(100_000), {}, 400],
    ['of more than a megabyte', () => 'x'.repeat(1_048_577), {}, 413],
    ['to PagerDuty’s path unsigned', good, { path: '/alerts/pagerduty' }, 401],
  ])('%s is answered with why', async (_, body, options, status) => {
    const answer = await send(house.address, body(), options);
    expect(answer).toMatchObject({ status });
    expect(answer.error).toMatch(/^[a-z_]+$/);
    expect(answer.detail).not.toBe('');
    expect(answer.detail).not.toMatch(/db-9/);
  });

  it('in part is taken for the rest', async () => {
    const bad = { ...written(pod('x')), labels: { alertname: 'X\0', pod: '\ud800' } };
    expect(
      await send(
        house.address,
        group([bad, { labels: 7 }, written(pod('db-0', { startsAt: '2026-11-30T13:00:00Z' }))]),
      ),
    ).toMatchObject({ status: 202 });
    await until(() => (/KubePodNotReady[^;]*2 times/.test(says()) ? true : undefined), 'the good alert', says);
  });
});

describe('PagerDuty', () => {
  it('is believed by its signature, and a replay has no effect', async () => {
    const body = JSON.stringify({
      event: {
        id: 'evt-1',
        event_type: 'incident.triggered',
        occurred_at: '2026-11-30T12:00:00Z',
        data: {
          id: 'P1',
          title: 'KubePodNotReady namespace=shop pod=db-0',
          created_at: '2026-11-30T12:00:00Z',
          urgency: 'high',
        },
      },
    });
    const signed = {
      path: '/alerts/pagerduty',
      headers: { 'x-pagerduty-signature': `v1=${createHmac('sha256', PAGERDUTY_SECRET).update(body).digest('hex')}` },
    };
    for (let time = 0; time < 5; time += 1)
      expect(await send(house.address, body, signed)).toMatchObject({ status: 202 });
    await until(() => (/KubePodNotReady[^;]*3 times/.test(says()) ? true : undefined), 'one more alert', says);
  });
});
