import { apiVersionOf, findResourceOfKind, type KindName, type ResourceName, resources } from './resources.ts';

/** Names one object. `uid` is null when the object does not exist (a deleted node, a class that was never made). */
export interface Ref {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string | null;
  readonly name: string;
  readonly uid: string | null;
}

/** Identity by kind, namespace and name. Names may hold dots and slashes, so the separator is one they cannot hold. */
export function refKey(ref: Pick<Ref, 'kind' | 'namespace' | 'name'>): string {
  return `${ref.kind}\n${ref.namespace ?? ''}\n${ref.name}`;
}

/** A reference to an object that is known by name only, or that does not exist. */
export function missingRef(kind: KindName, namespace: string | null, name: string): Ref {
  const resource = findResourceOfKind(kind);
  return { apiVersion: resource ? apiVersionOf(resource) : 'v1', kind, namespace, name, uid: null };
}

export function refOf(
  resource: ResourceName,
  meta: { readonly namespace: string | null; readonly name: string; readonly uid: string },
): Ref {
  return {
    apiVersion: apiVersionOf(resource),
    kind: resources[resource].kind,
    namespace: meta.namespace,
    name: meta.name,
    uid: meta.uid,
  };
}

/** `PersistentVolumeClaim shop/data-db-0`, the way people name objects. */
export function describeRef(ref: Pick<Ref, 'kind' | 'namespace' | 'name'>): string {
  return ref.namespace ? `${ref.kind} ${ref.namespace}/${ref.name}` : `${ref.kind} ${ref.name}`;
}

/** Keeps the first of each object, in order. */
export function uniqueRefs(refs: Iterable<Ref>): readonly Ref[] {
  const seen = new Map<string, Ref>();
  for (const ref of refs) if (!seen.has(refKey(ref))) seen.set(refKey(ref), ref);
  return [...seen.values()];
}
