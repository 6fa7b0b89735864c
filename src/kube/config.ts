import { accessSync, readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { type Cluster, type Context, KubeConfig, type User } from '@kubernetes/client-node';
import { z } from 'zod';
import { Refused } from '../domain/errors.ts';

export interface KubeSettings {
  /** The value of `KUBECONFIG`: files, separated as in PATH. Undefined takes `<home>/.kube/config`, then the pod's own account. */
  readonly kubeconfig: string | undefined;
  readonly home: string | undefined;
  /** Absolute paths of the credential plugins that a kubeconfig may run; none by default. */
  readonly allowedPlugins: readonly string[];
  /** Where a pod's own account is mounted; only tests change it. */
  readonly serviceAccountRoot?: string;
}

/** A credential plugin that is allowed, as the kubeconfig describes it. */
export interface PluginSpec {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** One cluster: a frozen configuration with exactly one context, that nothing can switch to another cluster. */
export interface ClusterConfig {
  /** The context's name. */
  readonly name: string;
  /** Base URL without a trailing slash. */
  readonly server: string;
  readonly proxyUrl: string | undefined;
  readonly config: KubeConfig;
  /** Run by us, not by the library: it would hand the plugin our whole environment and wait for ever. */
  readonly plugin: PluginSpec | undefined;
}

const TOKEN_FILE = 'var/run/secrets/kubernetes.io/serviceaccount/token';

/**
 * The configuration of one context; undefined takes the current one.
 *
 * Throws `Refused` in words for people: no kubeconfig, no such context, TLS verification switched off or plain HTTP to
 * another machine, a credential plugin that is not allowed.
 */
export function loadClusterConfig(settings: KubeSettings, contextName?: string): ClusterConfig {
  const files = loadFiles(settings);
  const wanted = contextName ?? files.map((file) => file.getCurrentContext()).find(Boolean);
  if (!wanted)
    throw new Refused('the kubeconfig names no current context: set KUBE_CONTEXT, or run kubectl config use-context');
  const context = firstOf(files, (file) => file.getContexts(), wanted);
  if (!context) throw new Refused(`there is no context ${quote(wanted)}; there are ${namesOf(files)}`);
  const cluster = firstOf(files, (file) => file.getClusters(), context.cluster);
  if (!cluster)
    throw new Refused(
      `context ${quote(wanted)} names cluster ${quote(context.cluster)}, which the kubeconfig does not have`,
    );
  const user = firstOf(files, (file) => file.getUsers(), context.user) ?? { name: context.user };
  return freeze(context, cluster, user, settings);
}

/** One configuration per context, in the order given; without contexts that of the current one. */
export function loadClusterConfigs(settings: KubeSettings, contexts: readonly string[]): readonly ClusterConfig[] {
  if (contexts.length === 0) return [loadClusterConfig(settings)];
  return contexts.map((context) => loadClusterConfig(settings, context));
}

/** Each file stays by itself: merging would let a file lend its credentials to another one's cluster of the same name. */
function loadFiles(settings: KubeSettings): readonly KubeConfig[] {
  const named = settings.kubeconfig?.split(delimiter).filter((path) => path !== '') ?? [];
  if (named.length > 0) return named.map(loadFile);
  const usual = settings.home === undefined ? undefined : join(settings.home, '.kube', 'config');
  if (usual !== undefined && isThere(usual)) return [loadFile(usual)];
  const root = settings.serviceAccountRoot ?? '/';
  if (isThere(join(root, TOKEN_FILE))) return [loadOwnAccount(root)];
  throw new Refused(
    `no cluster is configured: set KUBECONFIG, write ${usual ?? '~/.kube/config'}, or run inside a cluster`,
  );
}

function loadFile(path: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromString(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Refused(
      `the kubeconfig ${path} could not be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  config.makePathsAbsolute(dirname(path));
  return config;
}

function loadOwnAccount(root: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromCluster(root === '/' ? '' : root);
  if (config.getCurrentCluster()?.server.includes('undefined')) {
    throw new Refused('this looks like a pod, but KUBERNETES_SERVICE_HOST is not set: set KUBECONFIG instead');
  }
  return config;
}

function freeze(context: Context, cluster: Cluster, user: User, settings: KubeSettings): ClusterConfig {
  const server = checkServer(cluster);
  const plugin = checkUser(user, settings);
  const credentials: User = { ...user, exec: undefined };
  const config = new KubeConfig();
  config.loadFromOptions({
    // The library speaks plain HTTP only when verification is off; checkServer lets that through to this machine alone.
    clusters: [
      Object.freeze({ ...cluster, server, skipTLSVerify: cluster.skipTLSVerify || server.startsWith('http:') }),
    ],
    users: [Object.freeze(credentials)],
    contexts: [Object.freeze({ ...context })],
    currentContext: context.name,
  });
  for (const list of [config.clusters, config.users, config.contexts]) Object.freeze(list);
  Object.freeze(config);
  return Object.freeze({ name: context.name, server, proxyUrl: cluster.proxyUrl ?? undefined, config, plugin });
}

/** TLS that is not verified, or none at all, is for this machine only. */
function checkServer(cluster: Cluster): string {
  const url = URL.canParse(cluster.server) ? new URL(cluster.server) : undefined;
  const where = `cluster ${quote(cluster.name)}`;
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new Refused(`${where}: its server ${quote(cluster.server)} is no https URL`);
  if (url.username !== '' || url.search !== '' || url.hash !== '')
    throw new Refused(`${where}: its server must be a plain URL, without user, query or fragment`);
  if (isLoopback(url.hostname)) return url.href.replace(/\/+$/, '');
  if (url.protocol === 'http:')
    throw new Refused(
      `${where}: plain http to another machine is refused, because tokens would travel in the clear; use https`,
    );
  if (cluster.skipTLSVerify)
    throw new Refused(
      `${where}: insecure-skip-tls-verify to another machine is refused; give certificate-authority-data instead`,
    );
  return url.href.replace(/\/+$/, '');
}

export function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

const exec = z.object({
  apiVersion: z.string().default('client.authentication.k8s.io/v1'),
  command: z.string().min(1),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
});

const tokenFile = z.object({ name: z.literal('tokenFile'), config: z.object({ tokenFile: z.string() }) });

function checkUser(user: User, settings: KubeSettings): PluginSpec | undefined {
  const provider: unknown = user.authProvider;
  if (provider && !tokenFile.safeParse(provider).success) {
    throw new Refused(
      `user ${quote(user.name)}: auth-provider is refused (Kubernetes dropped it in 1.26); use a token, a client certificate or exec`,
    );
  }
  const raw: unknown = user.exec;
  if (!raw) return undefined;
  const parsed = exec.safeParse(raw);
  if (!parsed.success) throw new Refused(`user ${quote(user.name)}: its exec section has no command`);
  const { apiVersion, command, args, env } = parsed.data;
  if (!isAbsolute(command) || !settings.allowedPlugins.includes(command)) {
    const allowed =
      settings.allowedPlugins.length === 0 ? 'none is allowed' : `allowed are ${settings.allowedPlugins.join(', ')}`;
    throw new Refused(
      `user ${quote(user.name)}: its credential plugin ${quote(command)} is not allowed (${allowed}); use a service account's token, or allow its absolute path`,
    );
  }
  return {
    apiVersion,
    command,
    args: args ?? [],
    env: Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
  };
}

function firstOf<T extends { readonly name: string }>(
  files: readonly KubeConfig[],
  listOf: (file: KubeConfig) => readonly T[],
  name: string,
): T | undefined {
  for (const file of files) {
    const found = listOf(file).find((item) => item.name === name);
    if (found) return found;
  }
  return undefined;
}

function namesOf(files: readonly KubeConfig[]): string {
  const names = files.flatMap((file) => file.getContexts().map((context) => context.name));
  return names.length === 0 ? 'none' : names.join(', ');
}

function isThere(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}

function quote(text: string): string {
  return JSON.stringify(text);
}
