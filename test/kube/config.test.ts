import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Refused } from '../../src/domain/errors.ts';
import { type KubeSettings, loadClusterConfig, loadClusterConfigs } from '../../src/kube/config.ts';
import { kubeconfigOf, writeKubeconfig } from '../support/kube-server.ts';

const https = 'https://kube.example.com:6443';

function settings(kubeconfig: string | undefined, more: Partial<KubeSettings> = {}): KubeSettings {
  return { kubeconfig, home: undefined, allowedPlugins: [], ...more };
}

function two(): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'prod',
    clusters: [
      { name: 'prod', cluster: { server: 'https://prod.example.com' } },
      { name: 'staging', cluster: { server: 'https://staging.example.com/' } },
    ],
    users: [
      { name: 'p', user: { token: 'prod-token' } },
      { name: 's', user: { token: 'staging-token' } },
    ],
    contexts: [
      { name: 'prod', context: { cluster: 'prod', user: 'p' } },
      { name: 'staging', context: { cluster: 'staging', user: 's' } },
    ],
  };
}

describe('kubeconfig', () => {
  it('each cluster has a frozen configuration of its own with exactly one context', () => {
    const configs = loadClusterConfigs(settings(writeKubeconfig(two())), ['prod', 'staging']);
    expect(configs.map(({ name, server }) => [name, server])).toEqual([
      ['prod', 'https://prod.example.com'],
      ['staging', 'https://staging.example.com'],
    ]);
    for (const { config, name } of configs) {
      expect(config.getContexts().map((context) => context.name)).toEqual([name]);
      expect(config.getUsers()).toHaveLength(1);
      expect(() => config.setCurrentContext('other')).toThrow(TypeError);
      expect(() => config.addUser({ name: 'x' })).toThrow(TypeError);
    }
  });

  it('the current context is taken when none is asked for', () => {
    expect(loadClusterConfig(settings(writeKubeconfig(two()))).name).toBe('prod');
  });

  it('several files are looked through in order, without merging', () => {
    const other = { ...kubeconfigOf(https), 'current-context': '' };
    const both = [writeKubeconfig(other), writeKubeconfig(two())].join(':');
    expect(loadClusterConfig(settings(both)).name).toBe('prod');
    expect(loadClusterConfig(settings(both), 'test').server).toBe(https);
  });

  it('~/.kube/config comes next, the account of the pod last', () => {
    const home = mkdtempSync(join(tmpdir(), 'home-'));
    expect(() => loadClusterConfig(settings(undefined, { home, serviceAccountRoot: home }))).toThrow(
      /no cluster is configured/,
    );
    mkdirSync(join(home, 'var/run/secrets/kubernetes.io/serviceaccount'), { recursive: true });
    writeFileSync(join(home, 'var/run/secrets/kubernetes.io/serviceaccount/token'), 'pod-token');
    expect(() => loadClusterConfig(settings(undefined, { home, serviceAccountRoot: home }))).toThrow(
      /KUBERNETES_SERVICE_HOST/,
    );
    mkdirSync(join(home, '.kube'));
    writeFileSync(join(home, '.kube/config'), JSON.stringify(two()));
    expect(loadClusterConfig(settings(undefined, { home, serviceAccountRoot: home })).name).toBe('prod');
  });

  it.each<[string, object | string, RegExp]>([
    ['plain http to another machine', kubeconfigOf('http://kube.example.com'), /plain http to another machine/],
    [
      'unverified TLS to another machine',
      kubeconfigOf(https, { cluster: { 'insecure-skip-tls-verify': true } }),
      /insecure-skip-tls-verify/,
    ],
    ['a host that only looks like loopback', kubeconfigOf('http://127.0.0.1.example.com'), /plain http/],
    ['a server that is no URL', kubeconfigOf('kube'), /is no https URL/],
    ['credentials in the URL', kubeconfigOf('https://me:pw@kube.example.com'), /plain URL/],
    [
      'an auth-provider',
      kubeconfigOf(https, { user: { 'auth-provider': { name: 'oidc', config: {} } } }),
      /auth-provider is refused/,
    ],
    [
      'a credential plugin that is not allowed',
      kubeconfigOf(https, { user: { exec: { command: '/usr/bin/aws' } } }),
      /"\/usr\/bin\/aws" is not allowed/,
    ],
    [
      'an auth-provider that runs a plugin',
      kubeconfigOf(https, { user: { 'auth-provider': { name: 'exec', config: { exec: { command: '/bin/sh' } } } } }),
      /auth-provider is refused/,
    ],
    ['a file that is not YAML', 'a: [', /could not be read/],
    ['a file without contexts', { apiVersion: 'v1', kind: 'Config' }, /no current context/],
  ])('%s is refused', (_what, content, message) => {
    const load = () => loadClusterConfig(settings(writeKubeconfig(content)));
    expect(load).toThrow(Refused);
    expect(load).toThrow(message);
  });

  it('a context that is not there is refused with those that are', () => {
    expect(() => loadClusterConfig(settings(writeKubeconfig(two())), 'qa')).toThrow(
      'there is no context "qa"; there are prod, staging',
    );
  });

  it.each(['http://127.0.0.1:8080', 'http://localhost:8080', 'http://[::1]:8080', 'https://127.0.0.9:6443'])(
    '%s, this machine, needs no verified TLS',
    (server) => {
      expect(
        loadClusterConfig(
          settings(writeKubeconfig(kubeconfigOf(server, { cluster: { 'insecure-skip-tls-verify': true } }))),
        ).server,
      ).toBe(server);
    },
  );

  it('an allowed credential plugin is taken out of the library’s hands', () => {
    const exec = { command: '/usr/bin/aws', args: ['eks', 'get-token'], env: [{ name: 'AWS_PROFILE', value: 'prod' }] };
    const loaded = loadClusterConfig(
      settings(writeKubeconfig(kubeconfigOf(https, { user: { exec } })), { allowedPlugins: ['/usr/bin/aws'] }),
    );
    expect(loaded.plugin).toMatchObject({
      command: '/usr/bin/aws',
      args: ['eks', 'get-token'],
      env: { AWS_PROFILE: 'prod' },
    });
    expect(loaded.config.getCurrentUser()?.exec).toBeUndefined();
  });
});
