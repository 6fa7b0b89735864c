import { mkdtempSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { findResourceOfKind, resources } from '../../src/domain/resources.ts';
import { type ClusterConfig, loadClusterConfig } from '../../src/kube/config.ts';

/** One request as it came over the wire. */
export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** What to answer instead of the stored objects. */
export type Answer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body: unknown }
  /** The connection is cut without an answer. */
  | 'reset'
  /** Nothing is ever answered. */
  | 'hang';

export interface KubeServer {
  readonly url: string;
  readonly seen: readonly Seen[];
  /** How many connections were opened so far. */
  connections(): number;
  /** A configuration for this server alone, by way of a kubeconfig file. */
  readonly config: ClusterConfig;
  readonly kubeconfigPath: string;
  close(): Promise<void>;
}

const rawObject = z.looseObject({
  apiVersion: z.string().optional(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string().optional(), namespace: z.string().optional() }),
});
type RawObject = z.infer<typeof rawObject>;

/**
 * A small API server that remembers every request byte for byte and serves stored objects: lists with namespaces,
 * `limit`, `continue` and the field selectors that the reader uses; single objects; NotFound.
 */
export async function startKubeServer(
  options: { readonly objects?: readonly unknown[]; readonly answer?: (seen: Seen) => Answer | undefined } = {},
): Promise<KubeServer> {
  const seen: Seen[] = [];
  const objects = (options.objects ?? []).map((object) => rawObject.parse(object));
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const url = new URL(request.url ?? '/', 'http://server');
      const entry: Seen = {
        method: request.method ?? '',
        path: url.pathname,
        query: url.searchParams,
        headers: request.headers,
        body: Buffer.concat(chunks).toString('utf8'),
      };
      seen.push(entry);
      reply(response, options.answer?.(entry) ?? serve(entry, objects));
    });
  });
  let connections = 0;
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfigPath = writeKubeconfig(kubeconfigOf(url));
  return {
    url,
    seen,
    kubeconfigPath,
    connections: () => connections,
    config: loadClusterConfig({ kubeconfig: kubeconfigPath, home: undefined, allowedPlugins: [] }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A kubeconfig in JSON (which is YAML) with one context `test`. */
export function kubeconfigOf(server: string, more: { readonly cluster?: object; readonly user?: object } = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, ...more.cluster } }],
    users: [{ name: 'test', user: { token: 'sesame', ...more.user } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  };
}

export function writeKubeconfig(content: object | string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'kubeconfig-')), 'config');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

/** A Status as API servers send it. */
export function statusOf(code: number, reason: string, message = reason): Answer {
  return { status: code, body: { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code } };
}

function reply(response: ServerResponse, answer: Answer): void {
  if (answer === 'hang') return;
  if (answer === 'reset') {
    response.destroy();
    return;
  }
  const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers }).end(text);
}

const PATH = /^\/(?:api|apis\/[^/]+)\/[^/]+(?:\/namespaces\/([^/]+))?\/([a-z]+)(?:\/([^/]+))?(?:\/scale)?$/;

function serve(seen: Seen, objects: readonly RawObject[]): Answer {
  const own = /^\/api\/v1\/namespaces(?:\/([^/]+))?$/.exec(seen.path);
  const [, namespace, resource, name] = own
    ? [undefined, undefined, 'namespaces', own[1]]
    : (PATH.exec(seen.path) ?? []);
  if (resource === undefined) return { status: 404, body: '404 page not found' };
  const all = objects.filter((object) => {
    const found = findResourceOfKind(object.kind);
    return found === resource && (namespace === undefined || object.metadata.namespace === namespace);
  });
  if (name !== undefined) {
    const found = all.find((object) => object.metadata.name === name);
    return found ? { status: 200, body: found } : statusOf(404, 'NotFound', `${resource} "${name}" not found`);
  }
  return list(
    seen,
    resource,
    all.filter((object) => matches(object, seen.query.get('fieldSelector'))),
  );
}

function list(seen: Seen, resource: string, all: readonly RawObject[]): Answer {
  const from = Number(seen.query.get('continue') ?? 0);
  const to = from + Number(seen.query.get('limit') ?? all.length);
  const info = Object.entries(resources).find(([candidate]) => candidate === resource)?.[1];
  const more = to < all.length ? { continue: String(to) } : {};
  // As real servers do it, items carry neither kind nor apiVersion.
  const items = all.slice(from, to).map(({ kind: _kind, apiVersion: _version, ...rest }) => rest);
  return {
    status: 200,
    body: {
      kind: `${info?.kind ?? 'Unknown'}List`,
      apiVersion: 'v1',
      metadata: { resourceVersion: '1', ...more },
      items,
    },
  };
}

/** `spec.nodeName=n1`: the value at a dotted path. */
function matches(object: RawObject, selector: string | null): boolean {
  if (selector === null) return true;
  const [path = '', wanted] = selector.split('=');
  let value: unknown = object;
  for (const key of path.split('.'))
    value =
      typeof value === 'object' && value !== null ? Object.entries(value).find(([k]) => k === key)?.[1] : undefined;
  return value === wanted;
}
