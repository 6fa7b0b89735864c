import { describe, expect, it } from 'vitest';
import { describeRef } from '../../src/domain/ref.ts';
import { behindService, blockedWebhooks, webhookIn } from '../../src/domain/webhook.ts';
import { toCluster } from '../support/fixture.ts';

const meta = (name: string, namespace?: string, more: object = {}) => ({
  name,
  uid: `uid-${name}`,
  ...(namespace === undefined ? {} : { namespace }),
  ...more,
});
const hook = (webhook: object) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: meta('config'),
  webhooks: [{ name: 'v.x.io', clientConfig: { service: { namespace: 'x', name: 'hook' } }, ...webhook }],
});
const slice = (endpoints: readonly object[], namespace = 'x') => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: meta('hook-1', namespace, { labels: { 'kubernetes.io/service-name': 'hook' } }),
  endpoints,
});
const service = (selector: object | undefined) => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: meta('hook', 'x'),
  spec: { selector },
});

it.each([
  ['failed calling webhook "v.x.io": no endpoints available for service "hook"', 'v.x.io'],
  ['Internal error occurred: failed calling admission webhook "v.x.io": Post https://hook.x.svc: EOF', 'v.x.io'],
  ['failed to call webhook "v.x.io": context deadline exceeded', 'v.x.io'],
  ['admission webhook "v.x.io" denied the request: no', undefined],
  ['rpc error: code = DeadlineExceeded', undefined],
])('the webhook that could not be called in %s is %s', (message, name) => {
  expect(webhookIn(message)).toBe(name);
});

describe('a webhook is blocked', () => {
  const ready = { addresses: ['10.0.0.1'], conditions: { ready: true } };
  const notReady = { addresses: ['10.0.0.1'], conditions: { ready: false } };

  it.each<[string, readonly unknown[], boolean]>([
    ['when its Service has no slice', [hook({})], true],
    ['when no endpoint is ready', [hook({ failurePolicy: 'Fail' }), slice([notReady])], true],
    ['not when one is ready', [hook({}), slice([notReady, ready])], false],
    ['by its own Service, not one of that name elsewhere', [hook({}), slice([ready], 'other')], true],
    ['not when it may fail', [hook({ failurePolicy: 'Ignore' })], false],
    ['not when it stands outside', [hook({ clientConfig: { url: 'https://a' } })], false],
    ['not under another name', [hook({ name: 'w.x.io' })], false],
  ])('%s', (_, objects, isBlocked) => {
    expect(blockedWebhooks('v.x.io', toCluster(objects)).map(({ configuration }) => configuration.name)).toEqual(
      isBlocked ? ['config'] : [],
    );
  });
});

describe('behind a Service stand', () => {
  const workload = (name: string, matchLabels: object, namespace = 'x') => ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: meta(name, namespace),
    spec: { selector: { matchLabels } },
  });
  const seen = (objects: readonly unknown[]) =>
    behindService({ namespace: 'x', name: 'hook' }, toCluster(objects)).workloads.map(({ ref }) => describeRef(ref));

  it('the workloads of its namespace that its selector picks', () => {
    const objects = [
      service({ app: 'm' }),
      workload('m', { app: 'm', tier: '1' }),
      workload('other', { app: 'o' }),
      workload('elsewhere', { app: 'm' }, 'y'),
    ];
    expect(seen(objects)).toEqual(['DaemonSet x/m']);
  });

  it('else the owners of the pods that it picks', () => {
    const owners = [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 's', uid: 'u', controller: true }];
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: meta('s-0', 'x', { labels: { app: 'm' }, ownerReferences: owners }),
    };
    expect(seen([service({ app: 'm' }), pod])).toEqual(['StatefulSet x/s']);
  });

  it('nothing that can be told without a selector or without the Service', () => {
    expect(seen([service(undefined), workload('m', { app: 'm' })])).toEqual([]);
    expect(seen([workload('m', { app: 'm' })])).toEqual([]);
  });
});
