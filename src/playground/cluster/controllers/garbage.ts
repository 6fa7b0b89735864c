import type { KubeObject, Resource } from '../kinds.ts';
import { resourceTable } from '../kinds.ts';
import { microTime, millis } from '../time.ts';
import type { Component, Context, Controller } from './context.ts';

/**
 * The garbage collector in the small: objects whose owners are all gone are deleted, `foregroundDeletion` and `orphan`
 * are carried out, and a namespace that is being deleted is emptied before it goes.
 */
export class GarbageCollector implements Controller {
  readonly name = 'garbage-collector';
  readonly component = 'kube-controller-manager' as const;
  #lastRevision = -1;

  reconcile(context: Context): void {
    const { store } = context;
    if (store.revision === this.#lastRevision) return;
    this.#namespaces(context);
    const alive = new Set<string>();
    const owned: { readonly resource: Resource; readonly object: KubeObject }[] = [];
    const waiting: { readonly resource: Resource; readonly object: KubeObject }[] = [];
    for (const { resource } of resourceTable) {
      if (resource === 'events') continue;
      for (const object of store.all(resource)) {
        alive.add(object.metadata.uid);
        if (object.metadata.ownerReferences !== undefined) owned.push({ resource, object });
        if (object.metadata.deletionTimestamp === undefined) continue;
        const finalizers = object.metadata.finalizers ?? [];
        if (finalizers.includes('foregroundDeletion') || finalizers.includes('orphan'))
          waiting.push({ resource, object });
      }
    }
    for (const { resource, object } of waiting) this.#finish(context, resource, object, owned);
    for (const { resource, object } of owned) {
      const owners = object.metadata.ownerReferences ?? [];
      if (object.metadata.deletionTimestamp !== undefined || owners.some((owner) => alive.has(owner.uid))) continue;
      if (store.get(resource, object.metadata.namespace, object.metadata.name)?.metadata.uid !== object.metadata.uid)
        continue;
      store.remove(resource, object.metadata.namespace, object.metadata.name);
    }
    this.#lastRevision = store.revision;
  }

  #finish(
    context: Context,
    resource: Resource,
    object: KubeObject,
    owned: readonly { readonly resource: Resource; readonly object: KubeObject }[],
  ): void {
    const { store } = context;
    const { uid, name, namespace } = object.metadata;
    const orphan = (object.metadata.finalizers ?? []).includes('orphan');
    const dependents = owned.filter(
      (entry) => entry.object.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true,
    );
    for (const dependent of dependents) {
      const { name: dependentName, namespace: home, deletionTimestamp } = dependent.object.metadata;
      if (orphan) {
        store.mutate(dependent.resource, home, dependentName, (draft) => {
          draft.metadata.ownerReferences = (draft.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== uid);
        });
      } else if (deletionTimestamp === undefined) {
        store.remove(dependent.resource, home, dependentName, { propagationPolicy: 'Foreground' });
      }
    }
    const blocked = dependents.some(
      (entry) =>
        entry.object.metadata.ownerReferences?.some(
          (owner) => owner.uid === uid && owner.blockOwnerDeletion === true,
        ) === true,
    );
    if (blocked && !orphan) return;
    store.mutate(resource, namespace, name, (draft) => {
      draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter(
        (entry) => entry !== 'foregroundDeletion' && entry !== 'orphan',
      );
    });
  }

  #namespaces(context: Context): void {
    const { store } = context;
    for (const namespace of store.all('namespaces')) {
      if (namespace.metadata.deletionTimestamp === undefined) continue;
      const name = namespace.metadata.name;
      let left = 0;
      for (const entry of resourceTable) {
        if (!entry.namespaced) continue;
        for (const object of store.list(entry.resource, name)) {
          left += 1;
          if (object.metadata.deletionTimestamp === undefined) store.remove(entry.resource, name, object.metadata.name);
        }
      }
      if (left > 0) continue;
      store.mutate('namespaces', undefined, name, (draft) => {
        draft.spec = {};
      });
    }
  }
}

const RENEW_MS = 5000;
const EXPIRE_EVERY_MS = 60_000;

/** Leader leases of the parts that run, and the end of old events. */
export class Housekeeping implements Controller {
  readonly name = 'housekeeping';
  readonly component = undefined;
  #nextExpiry = 0;

  reconcile(context: Context): void {
    const { settings, clock } = context;
    const dashed = settings.driver.replace(/[^a-zA-Z0-9]/g, '-');
    this.#renew(context, 'kube-controller-manager', 'kube-controller-manager');
    this.#renew(context, 'kube-scheduler', 'kube-scheduler');
    this.#renew(context, 'external-attacher', `external-attacher-leader-${dashed}`);
    this.#renew(context, 'external-provisioner', dashed);
    if (clock.now() < this.#nextExpiry) return;
    this.#nextExpiry = clock.now() + EXPIRE_EVERY_MS;
    context.recorder.expire();
    context.wakeAt(this.#nextExpiry);
  }

  #renew(context: Context, component: Component, name: string): void {
    if (!context.running(component)) return;
    const { store, clock } = context;
    const now = clock.now();
    const lease = store.get('leases', 'kube-system', name);
    if (lease === undefined) {
      store.create(
        'leases',
        {
          metadata: { name, namespace: 'kube-system' },
          spec: {
            holderIdentity: `cp-1_${name}`,
            leaseDurationSeconds: 15,
            acquireTime: microTime(now),
            renewTime: microTime(now),
            leaseTransitions: 0,
          },
        },
        { seed: true },
      );
    } else if (now - (millis(lease.spec?.renewTime) ?? 0) >= RENEW_MS) {
      store.mutate('leases', 'kube-system', name, (draft) => {
        draft.spec = { ...draft.spec, renewTime: microTime(now) };
      });
    }
    context.wakeAt(now + RENEW_MS);
  }
}
