import { describe, expect, it } from 'vitest';
import { readConfig, SettingError } from '../src/config.ts';

const slack = { SLACK_BOT_TOKEN: 'xoxb-1', SLACK_SIGNING_SECRET: '0123456789abcdef' };

describe('settings', () => {
  it('need nothing at all: the playground, on loopback', () => {
    expect(readConfig({})).toMatchObject({
      mode: 'playground',
      role: 'all',
      host: '127.0.0.1',
      port: 3000,
      approvalTtlMs: 900_000,
      executionTtlMs: 600_000,
    });
  });

  it('are the bot when a Slack token is there, on all interfaces', () => {
    expect(readConfig(slack)).toMatchObject({ mode: 'bot', host: '0.0.0.0', settleMs: 60_000 });
  });

  it('take an empty value for none', () => {
    expect(readConfig({ SLACK_BOT_TOKEN: '', PORT: '' })).toMatchObject({ mode: 'playground', port: 3000 });
  });

  it('read durations and lists', () => {
    expect(readConfig({ ...slack, SETTLE: '30s', APPROVAL_TTL: '2h', CLUSTERS: 'prod, staging' })).toMatchObject({
      settleMs: 30_000,
      approvalTtlMs: 7_200_000,
      kube: { clusters: ['prod', 'staging'] },
    });
  });

  it('read what alerts need', () => {
    const alerts = {
      SLACK_INCIDENT_CHANNEL: '#incidents',
      ALERT_TOKEN: 'a-token-of-this-test',
      PAGERDUTY_SECRETS: 'a-secret-of-this-test, another-of-this-test',
      QUIET_HOURS: '22:00-07:00 Europe/Berlin',
    };
    expect(readConfig({ ...slack, ...alerts })).toMatchObject({
      scanIntervalMs: 300_000,
      alerts: {
        channel: '#incidents',
        token: 'a-token-of-this-test',
        pagerdutySecrets: ['a-secret-of-this-test', 'another-of-this-test'],
        quietHours: { from: 1320, to: 420, zone: 'Europe/Berlin' },
      },
    });
  });

  it('take an address of Prometheus, and 0 for off', () => {
    const url = 'https://bot:secret@prometheus.example.com/base';
    expect(readConfig({ ...slack, PROMETHEUS_URL: url })).toMatchObject({ prometheusUrl: url });
    expect(readConfig({ ...slack, SCAN_INTERVAL: '0' })).toMatchObject({ scanIntervalMs: 0 });
  });

  it.each<[string, Readonly<Record<string, string>>, RegExp]>([
    ['a Prometheus that is no URL', { PROMETHEUS_URL: 'prometheus:9090' }, /^PROMETHEUS_URL is no URL; write/],
    ['a token of another kind', { SLACK_BOT_TOKEN: 'xoxp-1' }, /^SLACK_BOT_TOKEN .*xoxb-/],
    ['a bot without a secret', { SLACK_BOT_TOKEN: 'xoxb-1' }, /^SLACK_SIGNING_SECRET is missing/],
    ['an API URL without its end', { ...slack, SLACK_API_URL: 'https://slack.com' }, /^SLACK_API_URL .*\/api\//],
    ['a role without a database', { ...slack, ROLE: 'web' }, /^DATABASE_URL is missing/],
    ['a role that does not exist', { ROLE: 'boss' }, /^ROLE .*remediator/],
    ['a port out of range', { PORT: '70000' }, /^PORT .*65535/],
    ['a duration without a unit', { SETTLE: '60' }, /^SETTLE .*30s/],
    ['a database of another kind', { DATABASE_URL: 'mysql://x' }, /^DATABASE_URL .*postgres:/],
    [
      'a channel that is none',
      { ...slack, SLACK_INCIDENT_CHANNEL: 'the channel' },
      /^SLACK_INCIDENT_CHANNEL .*#incidents/,
    ],
    ['a token that anybody guesses', { ...slack, ALERT_TOKEN: 'secret' }, /^ALERT_TOKEN .*32/],
    ['a secret that is too short', { ...slack, PAGERDUTY_SECRETS: 'a-secret-of-this-test,x' }, /^PAGERDUTY_SECRETS /],
    ['quiet hours without an end', { ...slack, QUIET_HOURS: '22:00' }, /^QUIET_HOURS .*22:00-07:00/],
    ['quiet hours in a zone that there is not', { ...slack, QUIET_HOURS: '22:00-07:00 Mars/Base' }, /^QUIET_HOURS /],
    ['a look at the clusters without a pause', { ...slack, SCAN_INTERVAL: '1s' }, /^SCAN_INTERVAL .*10s/],
    ['an admin by name', { ...slack, SLACK_ADMIN: '@dana' }, /^SLACK_ADMIN .*U/],
    ['a Redis that is none', { REDIS_URL: 'localhost' }, /^REDIS_URL .*redis:/],
    ['a policy file, which is not built', { ...slack, POLICY_FILE: 'p.yaml' }, /^POLICY_FILE is set, but/],
    ['a language that is not spoken', { BOT_LANGUAGE: 'fr' }, /^BOT_LANGUAGE/],
    ['fault points outside of tests', { K8S_STORAGE_FAULTS: 'executor.after_claim=kill' }, /^K8S_STORAGE_FAULTS/],
  ])('refuse %s in one line that says what to write', (_, environment, line) => {
    const read = () => readConfig(environment);
    expect(read).toThrow(SettingError);
    expect(read).toThrow(line);
    expect(read).not.toThrow(/\n/);
  });
});
