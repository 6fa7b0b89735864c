import type { KubeObject } from './kinds.ts';
import type { Store } from './store.ts';
import type { SimClock } from './time.ts';
import { microTime, millis, rfc3339 } from './time.ts';

/** An event to be told. */
export interface Told {
  readonly on: KubeObject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  readonly component: string;
  readonly host?: string;
  /** The scheduler's form: events.k8s.io, with `eventTime` and an empty source. */
  readonly modern?: boolean;
  /** kubelet's Node events and evictions carry no uid of the object. */
  readonly withoutUid?: boolean;
}

/** A repeated event is counted at most this often. */
const REPEAT_MS = 30_000;

/** Writes events as client-go's recorders do: equal ones are counted, and they expire after `ttlMs`. */
export class Recorder {
  readonly #store: Store;
  readonly #clock: SimClock;
  readonly #names = new Map<string, string>();
  readonly #ttlMs: number;
  #serial = 0;

  constructor(store: Store, clock: SimClock, ttlMs = 3_600_000) {
    this.#store = store;
    this.#clock = clock;
    this.#ttlMs = ttlMs;
  }

  /** Tells an event, or counts it when it has been told before. */
  tell(told: Told): void {
    const now = this.#clock.now();
    const namespace = told.on.metadata.namespace ?? 'default';
    // Nothing new is taken into a namespace that is going, events neither.
    if (this.#store.get('namespaces', undefined, namespace)?.metadata.deletionTimestamp !== undefined) return;
    const key = `${told.on.metadata.uid}|${told.component}|${told.reason}|${told.message}`;
    const known = this.#names.get(key);
    const event = known === undefined ? undefined : this.#store.get('events', namespace, known);
    if (event !== undefined) {
      const last = millis(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime) ?? 0;
      if (now - last < REPEAT_MS) return;
      this.#store.mutate('events', namespace, event.metadata.name, (draft) => {
        if (told.modern === true) {
          draft.series = { count: (draft.series?.count ?? 1) + 1, lastObservedTime: microTime(now) };
        } else {
          draft.count = (draft.count ?? 1) + 1;
          draft.lastTimestamp = rfc3339(now);
        }
      });
      return;
    }
    this.#serial += 1;
    const name = `${told.on.metadata.name}.${(BigInt(now) * 1_000_000n + BigInt(this.#serial)).toString(16)}`;
    const stamp = rfc3339(now);
    this.#store.create(
      'events',
      {
        metadata: { name, namespace },
        involvedObject: {
          kind: told.on.kind,
          ...(told.on.metadata.namespace === undefined ? {} : { namespace: told.on.metadata.namespace }),
          name: told.on.metadata.name,
          ...(told.withoutUid === true ? {} : { uid: told.on.metadata.uid }),
          apiVersion: told.on.apiVersion,
          ...(told.withoutUid === true ? {} : { resourceVersion: told.on.metadata.resourceVersion }),
        },
        type: told.type,
        reason: told.reason,
        message: told.message,
        reportingComponent: told.component,
        ...(told.modern === true
          ? { source: {}, eventTime: microTime(now), action: 'Scheduling', reportingInstance: `${told.component}-cp-1` }
          : {
              source: { component: told.component, ...(told.host === undefined ? {} : { host: told.host }) },
              firstTimestamp: stamp,
              lastTimestamp: stamp,
              count: 1,
            }),
      },
      { seed: true },
    );
    this.#names.set(key, name);
  }

  /** Drops events past their time; returns when the next one is due, if any. */
  expire(): number | undefined {
    const now = this.#clock.now();
    let next: number | undefined;
    for (const event of this.#store.all('events')) {
      const seen =
        millis(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime) ??
        millis(event.metadata.creationTimestamp) ??
        now;
      const due = seen + this.#ttlMs;
      if (due <= now) this.#store.remove('events', event.metadata.namespace, event.metadata.name);
      else next = Math.min(next ?? due, due);
    }
    return next;
  }
}
