import { accessSync, readFileSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import { type Cluster, type Context, KubeConfig, type User } from '@kubernetes/client-node';
import { z } from 'zod';
import { messageOf, Refused } from '../domain/errors.ts';
import { en, enumerated, type Text, zh } from '../domain/text.ts';

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
    throw new Refused({
      en: 'the kubeconfig names no current context: set KUBE_CONTEXT, or run kubectl config use-context',
      zh: 'kubeconfig 没有指定当前上下文：请设置 KUBE_CONTEXT，或运行 kubectl config use-context',
    });
  const context = firstOf(files, (file) => file.getContexts(), wanted);
  if (!context)
    throw new Refused({
      en: en`there is no context ${quote(wanted)}; there are ${namesOf(files)}`,
      zh: zh`没有上下文 ${quote(wanted)}；现有的是 ${namesOf(files)}`,
    });
  const cluster = firstOf(files, (file) => file.getClusters(), context.cluster);
  if (!cluster)
    throw new Refused({
      en: en`context ${quote(wanted)} names cluster ${quote(context.cluster)}, which the kubeconfig does not have`,
      zh: zh`上下文 ${quote(wanted)} 指向集群 ${quote(context.cluster)}，而 kubeconfig 中没有这个集群`,
    });
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
  const file = usual ?? '~/.kube/config';
  throw new Refused({
    en: en`no cluster is configured: set KUBECONFIG, write ${file}, or run inside a cluster`,
    zh: zh`没有配置集群：请设置 KUBECONFIG，编写 ${file}，或在集群内运行`,
  });
}

function loadFile(path: string): KubeConfig {
  const config = new KubeConfig();
  try {
    config.loadFromString(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new Refused({
      en: en`the kubeconfig ${path} could not be read: ${messageOf(error)}`,
      zh: zh`无法读取 kubeconfig ${path}：${messageOf(error)}`,
    });
  }
  config.makePathsAbsolute(dirname(path));
  return config;
}

function loadOwnAccount(root: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromCluster(root === '/' ? '' : root);
  if (config.getCurrentCluster()?.server.includes('undefined')) {
    throw new Refused({
      en: 'this looks like a pod, but KUBERNETES_SERVICE_HOST is not set: set KUBECONFIG instead',
      zh: '这里看起来是一个 Pod，但没有设置 KUBERNETES_SERVICE_HOST：请改为设置 KUBECONFIG',
    });
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
  const where: Text = { en: en`cluster ${quote(cluster.name)}`, zh: zh`集群 ${quote(cluster.name)}` };
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw new Refused({
      en: en`${where}: its server ${quote(cluster.server)} is no https URL`,
      zh: zh`${where}：它的 server ${quote(cluster.server)} 不是 https URL`,
    });
  if (url.username !== '' || url.search !== '' || url.hash !== '')
    throw new Refused({
      en: en`${where}: its server must be a plain URL, without user, query or fragment`,
      zh: zh`${where}：它的 server 必须是普通 URL，不带用户、查询或片段`,
    });
  if (isLoopback(url.hostname)) return url.href.replace(/\/+$/, '');
  if (url.protocol === 'http:')
    throw new Refused({
      en: en`${where}: plain http to another machine is refused, because tokens would travel in the clear; use https`,
      zh: zh`${where}：拒绝以普通 http 访问另一台机器，因为令牌会以明文传输；请使用 https`,
    });
  if (cluster.skipTLSVerify)
    throw new Refused({
      en: en`${where}: insecure-skip-tls-verify to another machine is refused; give certificate-authority-data instead`,
      zh: zh`${where}：拒绝对另一台机器使用 insecure-skip-tls-verify；请改为提供 certificate-authority-data`,
    });
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
    throw new Refused({
      en: en`user ${quote(user.name)}: auth-provider is refused (Kubernetes dropped it in 1.26); use a token, a client certificate or exec`,
      zh: zh`用户 ${quote(user.name)}：拒绝使用 auth-provider（Kubernetes 在 1.26 中已将其移除）；请使用令牌、客户端证书或 exec`,
    });
  }
  const raw: unknown = user.exec;
  if (!raw) return undefined;
  const parsed = exec.safeParse(raw);
  if (!parsed.success)
    throw new Refused({
      en: en`user ${quote(user.name)}: its exec section has no command`,
      zh: zh`用户 ${quote(user.name)}：它的 exec 部分没有 command`,
    });
  const { apiVersion, command, args, env } = parsed.data;
  if (!isAbsolute(command) || !settings.allowedPlugins.includes(command)) {
    const plugins = enumerated(settings.allowedPlugins, settings.allowedPlugins.length);
    const allowed: Text =
      settings.allowedPlugins.length === 0
        ? { en: 'none is allowed', zh: '没有允许任何插件' }
        : { en: en`allowed are ${plugins}`, zh: zh`允许的是 ${plugins}` };
    throw new Refused({
      en: en`user ${quote(user.name)}: its credential plugin ${quote(command)} is not allowed (${allowed}); use a service account's token, or allow its absolute path`,
      zh: zh`用户 ${quote(user.name)}：不允许使用它的凭据插件 ${quote(command)}（${allowed}）；请使用服务账户的令牌，或允许该插件的绝对路径`,
    });
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
