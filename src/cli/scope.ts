import { closest, distance } from 'fastest-levenshtein';
import type { Cluster } from '../domain/cluster.ts';
import { describeRef } from '../domain/ref.ts';
import { findResourceOfKind, findResourceOfWord, kindWords, resources } from '../domain/resources.ts';
import type { ScopeRef } from '../domain/scope.ts';
import { Exit } from './deps.ts';

/** Where kubectl looks when no namespace is given. */
const DEFAULT_NAMESPACE = 'default';

/**
 * What `[KIND/NAME] [-n NAMESPACE]` asks about. Nothing: the whole cluster; a namespace alone: that namespace.
 * Exits with 2 and a hint for a word that is no kind.
 */
export function parseScope(target: string | undefined, namespace: string | undefined): ScopeRef {
  if (target === undefined)
    return namespace === undefined ? { kind: 'Cluster' } : { kind: 'Namespace', namespace: null, name: namespace };
  const slash = target.indexOf('/');
  const word = slash === -1 ? target : target.slice(0, slash);
  const resource = findResourceOfWord(word);
  if (resource === undefined) {
    throw new Exit(
      2,
      `${quote(word)} is no kind of object that can be diagnosed; did you mean ${closest(word.toLowerCase(), [...kindWords])}? The kinds are ${kinds()}.`,
    );
  }
  const name = slash === -1 ? '' : target.slice(slash + 1);
  if (name === '')
    throw new Exit(
      2,
      `${quote(target)} names no object: write ${word}/NAME, for example ${word}/${example(resource)}.`,
    );
  const { kind, namespaced } = resources[resource];
  return { kind, namespace: namespaced ? (namespace ?? DEFAULT_NAMESPACE) : null, name };
}

/** Exits with 2, naming near misses, when the object of the question is not in what was read. */
export function requireScope(cluster: Cluster, scope: ScopeRef): void {
  if (scope.kind === 'Cluster') return;
  const resource = findResourceOfKind(scope.kind);
  if (resource === undefined || !cluster.isRead(resource)) return;
  if (cluster.findObject(resource, scope.namespace, scope.name)) return;
  const near = nearMisses(cluster, scope);
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(', or ')}?`;
  throw new Exit(
    2,
    `${describeRef(scope)} does not exist${cluster.source === 'files' ? ' in these files' : ''}.${hint}`,
  );
}

/** The same name elsewhere first, then names that are spelled alike; three at most. */
function nearMisses(cluster: Cluster, scope: Exclude<ScopeRef, { readonly kind: 'Cluster' }>): readonly string[] {
  const resource = findResourceOfKind(scope.kind);
  if (resource === undefined) return [];
  const word = resources[resource].words[0] ?? resource;
  const ranked = cluster.objects[resource].flatMap((object) => {
    const apart =
      object.name === scope.name ? 0 : isPart(object.name, scope.name) ? 1 : distance(object.name, scope.name);
    const isNear = apart <= Math.max(2, Math.floor(scope.name.length / 4));
    const elsewhere = object.namespace !== scope.namespace;
    return isNear
      ? [
          {
            apart: apart + (elsewhere ? 0.5 : 0),
            text: `${word}/${object.name}${elsewhere ? ` -n ${object.namespace}` : ''}`,
          },
        ]
      : [];
  });
  return ranked
    .toSorted((a, b) => a.apart - b.apart)
    .slice(0, 3)
    .map(({ text }) => text);
}

function isPart(name: string, asked: string): boolean {
  return asked.length >= 3 && (name.includes(asked) || asked.includes(name));
}

function kinds(): string {
  return Object.values(resources)
    .flatMap(({ words }) => words[0] ?? [])
    .join(', ');
}

function example(resource: keyof typeof resources): string {
  return resource === 'nodes' ? 'node-a' : 'data-db-0';
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
