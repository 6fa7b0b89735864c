/**
 * A small world for the machine that carries plans out: one API server in memory that journals every effect, one store in
 * memory with the same guards as the real one, and a checker of what must hold in the end. Each guard can be taken out,
 * to show that the checker sees it.
 */

import { isDeepStrictEqual } from 'node:util';
import { applyPatch, type Operation } from 'rfc6902';
import { z } from 'zod';
import { Cluster } from '../../src/domain/cluster.ts';
import { Refused } from '../../src/domain/errors.ts';
import { emptyObjects, type JsonObject } from '../../src/domain/objects.ts';
import { mayBecome, type PlanState, type StepState } from '../../src/domain/plan.ts';
import { defineRemediation, type Remediation } from '../../src/domain/remediation.ts';
import { digestOf } from '../../src/domain/report.ts';
import type { SpokenPlan } from '../../src/domain/spoken.ts';
import { type Text, textIn, verbatim } from '../../src/domain/text.ts';
import {
  type DeleteWrite,
  deleteObject,
  effectOf,
  fromPlanned,
  type PlannedWrite,
  toPlanned,
  valueAt,
  type Write,
} from '../../src/domain/write.ts';
import type { FaultHook, FaultPoint } from '../../src/fault-points.ts';
import { resourceOfRaw } from '../../src/kube/parse.ts';
import type { ClusterAccess, ClusterWriter, Fence, WriteResult } from '../../src/ports.ts';
import type { ExecutionStore, RemediateDeps } from '../../src/remediate.ts';
import { toCluster } from './fixture.ts';
import { memberOf } from './people.ts';
import { storedPlan } from './stored.ts';

/** Thrown by a fault point: the process is gone, whatever it was doing. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

export type Guard = 'read' | 'uid' | 'epoch' | 'compare-and-set' | 'intent';

export interface Effect {
  /** The step of the plan whose write it is, to the letter; undefined when it is none of them. */
  readonly step: number | undefined;
  readonly verb: string;
  readonly name: string;
  readonly uid: string;
  readonly auditId: string;
}

export const CLUSTER_UID = 'cluster-1';

/** Deletes two pods, one after the other; a controller makes each again at once, which is what careless retries hurt. */
export const deleteTwoPods = defineRemediation({
  id: 'delete-two-pods',
  risk: 'high',
  requires: [],
  params: z.object({ uids: z.array(z.string()) }),
  touches: [{ verb: 'delete', resource: 'pods' }],
  needs: ['pods'],
  withinSeconds: 60,
  doc: { does: verbatim('Deletes two pods.'), undo: verbatim('none'), caution: verbatim('For tests.') },
  title: () => verbatim('Delete two pods'),
  scope: () => ({ kind: 'Namespace', namespace: null, name: 'shop' }),
  plan: ({ uids }) => uids.map((uid, i) => deleteObject({ resource: 'pods', namespace: 'shop', name: `p${i}`, uid })),
  preflight: () => [],
  verify: () => 'done',
});

export class World {
  readonly objects = new Map<string, JsonObject>();
  readonly effects: Effect[] = [];
  readonly intents: { step: number; auditId: string; epoch: number }[] = [];
  readonly history: PlanState[] = ['APPROVED'];
  /** Answers of the API server for the next real writes, instead of its own. `lost` means: done, and the reply is lost. */
  readonly replies: (WriteResult | 'own' | 'lost' | 'throttled')[] = [];
  /** The same for dry runs. */
  readonly dryRuns: (WriteResult | 'own')[] = [];
  dryRun: WriteResult = { kind: 'applied', object: undefined };
  clusterUid: string | null = CLUSTER_UID;
  paused = false;
  /** For how many more snapshots the pods cannot be read. */
  blindSnapshots = 0;
  plan: SpokenPlan;
  nowMs = Date.UTC(2026, 10, 30, 12);
  leaseEndsMs = 0;
  goalSinceMs: number | undefined;
  /** Whether a controller makes a deleted pod again under a new uid. */
  remakes = true;
  /** What happens right before the n-th look at an object (0-based), such as a pause or another owner's whole run. */
  onGet: (count: number) => void | Promise<void> = () => {};
  /** What happens between a look at an object and the write, such as its replacement by another one. */
  onDryRun: () => void = () => {};
  /** When each owner got the plan, and until when the one before could still believe to have it. */
  readonly claims: { readonly atMs: number; readonly earlierEndsMs: number }[] = [];
  #gets = 0;
  #uids = 0;

  readonly without: ReadonlySet<Guard>;
  readonly #given: Given | undefined;

  constructor(options: { readonly without?: readonly Guard[]; readonly given?: Given } = {}) {
    this.without = new Set(options.without ?? []);
    this.#given = options.given;
    if (options.given) {
      for (const object of options.given.objects) this.objects.set(keyOf(object), object);
      this.clusterUid = this.snapshot().identity.uid;
      this.plan = planOf(options.given, this.snapshot());
      return;
    }
    const uids = Array.from({ length: 2 }, (_, i) => this.#makePod(`p${i}`));
    this.plan = planFor(uids);
  }

  /** Somebody else makes a pod anew under the same name. */
  replacePod(name: string): void {
    this.#makePod(name);
  }

  #makePod(name: string): string {
    this.#uids += 1;
    const uid = `uid-${this.#uids}`;
    this.objects.set(`pods/shop/${name}`, { metadata: { name, namespace: 'shop', uid } });
    return uid;
  }

  get access(): ClusterAccess {
    const reader = {
      name: 'prod',
      identity: () => Promise.resolve({ name: 'prod', uid: this.clusterUid }),
      read: () =>
        Promise.resolve({ cluster: this.snapshot(), cost: { requests: 1, objects: 0, bytes: 0, milliseconds: 0 } }),
      get: async (resource: string, namespace: string | null, name: string) => {
        const count = this.#gets;
        this.#gets += 1;
        await this.onGet(count);
        if (this.without.has('read')) return this.blind(name);
        return this.objects.get(`${resource}/${namespace ?? ''}/${name}`);
      },
    };
    return {
      name: 'prod',
      reader,
      act: { reader, writer: this.#writerOf(false), backend: this.#writerOf(true) },
    };
  }

  /** Each far end takes its own writes alone. */
  #writerOf(isBackend: boolean): ClusterWriter {
    return {
      write: (write, options) => {
        if ((write.resource === 'backendvolumes') !== isBackend) throw new TypeError('it is sent to the wrong far end');
        return Promise.resolve(this.write(write, options));
      },
    };
  }

  /** Without the read guard the executor believes that the planned object is there, whatever is. */
  blind(name: string): JsonObject {
    const step = this.plan.steps.find((candidate) => candidate.write.name === name);
    return { metadata: { name, namespace: 'shop', uid: step?.write.uid ?? '' } };
  }

  snapshot(): Cluster {
    if (this.#given) return toCluster([...this.objects.values()], { now: this.nowMs });
    return new Cluster({
      identity: { name: 'prod', uid: CLUSTER_UID },
      now: this.nowMs,
      objects: emptyObjects,
      unread: this.blindSnapshots-- > 0 ? [{ resource: 'pods', reason: verbatim('timed out') }] : [],
      podCoverage: { kind: 'all' },
      source: 'live',
    });
  }

  write(write: Write, { auditId, dryRun }: { readonly auditId: string; readonly dryRun: boolean }): WriteResult {
    if (dryRun) {
      this.onDryRun();
      const answer = this.dryRuns.shift();
      return answer === undefined || answer === 'own' ? this.dryRun : answer;
    }
    const scripted = this.replies.shift();
    if (scripted === 'throttled') return { kind: 'unknown', says: verbatim('429') };
    if (scripted !== undefined && scripted !== 'own' && scripted !== 'lost') return scripted;
    const result = this.#apply(write, auditId);
    return scripted === 'lost' ? { kind: 'unknown', says: verbatim('connection reset') } : result;
  }

  #apply(write: Write, auditId: string): WriteResult {
    const key = `${write.resource}/${write.namespace ?? ''}/${write.name}`;
    const live = this.objects.get(key);
    const uid = uidOf(live);
    const step = this.plan.steps.find((one) => isDeepStrictEqual(one.write, toPlanned(write)))?.no;
    if (write.verb === 'create') {
      if (live !== undefined) return { kind: 'conflict', says: verbatim('already exists') };
      const made = withMeta(write.body, { uid: this.#nextUid() });
      this.effects.push({ step, verb: write.verb, name: write.name, uid: uidOf(made) ?? '', auditId });
      this.objects.set(key, made);
      return { kind: 'applied', object: made };
    }
    if (live === undefined || uid === undefined) return { kind: 'notFound', says: verbatim('not found') };
    if (uid !== write.uid && !this.without.has('uid'))
      return { kind: 'conflict', says: verbatim('the UID in the precondition does not match') };
    if (write.verb === 'patch') {
      const copy = structuredClone(live) as JsonObject;
      // The API server's `test` for null holds where there is nothing.
      const body = write.body.filter(
        (one) => one.op !== 'test' || one.value !== null || valueAt(live, one.path) !== undefined,
      );
      const failed = applyPatch(copy, body as unknown as Operation[]).find((error) => error !== null);
      if (failed) return { kind: 'invalid', says: verbatim(failed.message) };
      this.effects.push({ step, verb: write.verb, name: write.name, uid, auditId });
      if (isGoing(copy) && finalizersOf(copy).length === 0) this.objects.delete(key);
      else this.objects.set(key, copy);
      return { kind: 'applied', object: copy };
    }
    this.effects.push({ step, verb: write.verb, name: write.name, uid, auditId });
    return this.#delete(write, key, live);
  }

  /** Others' finalizers keep the object; Kubernetes' own protection goes at once where nobody uses it. */
  #delete(write: DeleteWrite, key: string, live: JsonObject): WriteResult {
    const held = finalizersOf(live).filter((finalizer) => !/^kubernetes\.io\/pvc?-protection$/.test(finalizer));
    if (held.length > 0) {
      const going = withMeta(live, {
        deletionTimestamp: '2026-11-30T12:00:00Z',
        deletionGracePeriodSeconds: write.body.gracePeriodSeconds ?? 0,
      });
      this.objects.set(key, going);
      return { kind: 'applied', object: going };
    }
    this.objects.delete(key);
    if (this.remakes && write.resource === 'pods') {
      if (this.#given) this.objects.set(key, withMeta(live, { uid: this.#nextUid() }));
      else this.#makePod(write.name);
    }
    return { kind: 'applied', object: undefined };
  }

  #nextUid(): string {
    this.#uids += 1;
    return `uid-made-${this.#uids}`;
  }

  get store(): ExecutionStore {
    const { without } = this;
    const fence = ({ epoch }: Fence) => {
      if (!without.has('epoch') && epoch !== this.plan.epoch)
        throw new Refused(verbatim('another owner has the lease'));
    };
    return {
      findPlan: () => Promise.resolve(storedPlan(this.plan)),
      pausedBy: () => Promise.resolve(this.paused ? { actor: 'U1', at: '' } : undefined),
      endUnbegun: (_, to, says) => Promise.resolve(this.#move(to, says)),
      claim: (_, _owner, leaseMs) => {
        const isFree =
          this.plan.state === 'APPROVED' ||
          ((this.plan.state === 'EXECUTING' || this.plan.state === 'VERIFYING') && this.nowMs >= this.leaseEndsMs);
        if (!isFree && !without.has('compare-and-set')) return Promise.resolve(undefined);
        const isTakeover = this.plan.state !== 'APPROVED';
        this.claims.push({ atMs: this.nowMs, earlierEndsMs: this.leaseEndsMs });
        if (this.plan.state !== 'VERIFYING') this.#move('EXECUTING', null);
        this.plan = { ...this.plan, epoch: this.plan.epoch + 1 };
        this.leaseEndsMs = this.nowMs + leaseMs;
        return Promise.resolve({ plan: storedPlan(this.plan), epoch: this.plan.epoch, isTakeover });
      },
      renew: async (held) => fence(held),
      intent: async (held, no, { auditId }) => {
        fence(held);
        if (this.paused) throw new Refused(verbatim('paused'));
        if (without.has('intent')) return;
        this.intents.push({ step: no, auditId, epoch: held.epoch });
        this.#step(no, 'INTENT', held.epoch, true);
      },
      outcome: async (held, no, { state }) => {
        fence(held);
        this.#step(no, state, held.epoch, false);
      },
      beginVerifying: async (held) => {
        fence(held);
        this.#move('VERIFYING', null);
      },
      goalHeld: async (held, holds) => {
        fence(held);
        this.goalSinceMs = holds ? (this.goalSinceMs ?? this.nowMs) : undefined;
        return this.goalSinceMs === undefined ? 0 : this.nowMs - this.goalSinceMs;
      },
      finish: async (held, to, says) => {
        fence(held);
        this.#move(to, says);
      },
      release: async (held) => {
        fence(held);
        this.leaseEndsMs = this.nowMs;
      },
    };
  }

  #move(to: PlanState, says: Text | null): void {
    this.plan = { ...this.plan, state: to, stateReason: says === null ? null : textIn(says, 'en') };
    this.history.push(to);
  }

  #step(no: number, state: StepState, epoch: number, isAttempt: boolean): void {
    const steps = this.plan.steps.map((step) =>
      step.no === no ? { ...step, state, epoch, attempt: step.attempt + (isAttempt ? 1 : 0) } : step,
    );
    this.plan = { ...this.plan, steps };
  }

  deps(
    options: { readonly owner?: string; readonly fault?: FaultHook; readonly settleMs?: number } = {},
  ): RemediateDeps {
    return {
      store: this.store,
      chat: {
        identity: () => Promise.resolve({ teamId: 'T1', botUserId: 'B1', url: '' }),
        personNow: (user) => Promise.resolve(personOf(user)),
      },
      clusters: new Map([['prod', this.access]]),
      remediations: [this.#given ? withoutWaiting(this.#given.remediation) : deleteTwoPods],
      clock: { now: () => this.nowMs },
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      owner: options.owner ?? 'a',
      settings: { leaseMs: 30_000, settleMs: options.settleMs ?? 0, pollMs: 1000 },
      sleep: (ms) => {
        this.nowMs += ms;
        return Promise.resolve();
      },
      ...(options.fault ? { fault: options.fault } : {}),
    };
  }

  /** What must hold at the end of any run; the list of what does not. */
  broken(): readonly string[] {
    const faults: string[] = [];
    const planned = new Set(this.plan.steps.map((step) => step.write.uid));
    for (const effect of this.effects) {
      if (effect.step === undefined) faults.push(`effect on ${effect.name}, which is in no plan`);
      if (effect.verb !== 'create' && !planned.has(effect.uid))
        faults.push(`effect on ${effect.uid}, which is in no plan`);
    }
    for (const step of this.plan.steps) {
      const count = this.effects.filter((effect) => effect.step === step.no).length;
      if (count > 1) faults.push(`step ${step.no} happened ${count} times`);
      const live = this.objects.get(`${step.write.resource}/${step.write.namespace ?? ''}/${step.write.name}`);
      const isLost = count === 0 && effectOf(fromPlanned(step.write), live) !== 'applied';
      if (isLost && this.plan.state === 'SUCCEEDED') faults.push(`step ${step.no} is lost`);
    }
    for (const effect of this.effects) {
      if (!this.intents.some((intent) => intent.auditId === effect.auditId))
        faults.push(`effect ${effect.auditId} has no intent`);
    }
    const epochs = this.intents.map((intent) => intent.epoch);
    if (epochs.some((epoch, i) => i > 0 && epoch < (epochs[i - 1] ?? 0)))
      faults.push('an older owner went on after a newer one');
    for (const step of this.plan.steps) {
      const isDone = this.effects.some((effect) => effect.step === step.no);
      if (isDone && step.state === 'REFUSED') faults.push(`step ${step.no} happened and is told as refused`);
    }
    if (this.claims.some((claim) => claim.atMs < claim.earlierEndsMs)) faults.push('two owners at the same time');
    for (const [i, state] of this.history.entries()) {
      const before = this.history[i - 1];
      if (before !== undefined && !mayBecome(before, state)) faults.push(`${before} became ${state}`);
    }
    return faults;
  }
}

/** A hook that ends the process at the n-th passing of a point. */
export function crashAt(point: FaultPoint, n = 1): FaultHook {
  let left = n;
  return (passed) => {
    if (passed !== point) return;
    left -= 1;
    if (left === 0) throw new Crash(point);
  };
}

function personOf(user: string) {
  return memberOf(user, { isRestricted: user.startsWith('G') });
}

/** A remediation of the catalogue in the state of a fixture. */
export interface Given {
  readonly remediation: Remediation;
  readonly params: Readonly<Record<string, unknown>>;
  readonly objects: readonly JsonObject[];
}

/** What must follow between and after the writes is the cluster's; the machine is shown it as done. */
function withoutWaiting(remediation: Remediation): Remediation {
  return { ...remediation, settled: () => true, verify: () => 'done' };
}

const named = z.object({ metadata: z.object({ name: z.string(), namespace: z.string().nullish() }) });

function keyOf(object: JsonObject): string {
  const { metadata } = named.parse(object);
  return `${resourceOfRaw(object) ?? ''}/${metadata.namespace ?? ''}/${metadata.name}`;
}

function withMeta(object: JsonObject, more: JsonObject): JsonObject {
  const metadata = valueAt(object, '/metadata');
  return {
    ...object,
    metadata: { ...(typeof metadata === 'object' && !Array.isArray(metadata) ? metadata : {}), ...more },
  };
}

function finalizersOf(object: JsonObject): readonly string[] {
  return z.array(z.string()).catch([]).parse(valueAt(object, '/metadata/finalizers'));
}

function isGoing(object: JsonObject): boolean {
  return valueAt(object, '/metadata/deletionTimestamp') !== undefined;
}

function uidOf(object: JsonObject | undefined): string | undefined {
  const uid = object && valueAt(object, '/metadata/uid');
  return typeof uid === 'string' ? uid : undefined;
}

function planOf({ remediation, params }: Given, cluster: Cluster): SpokenPlan {
  const writes = remediation.plan(params, cluster).map(toPlanned);
  return toPlan(remediation.id, params, writes, cluster.identity.uid ?? '');
}

function planFor(uids: readonly string[]): SpokenPlan {
  const params = { uids: [...uids] };
  const writes = uids.map((uid, i) =>
    toPlanned(deleteObject({ resource: 'pods', namespace: 'shop', name: `p${i}`, uid })),
  );
  return toPlan('delete-two-pods', params, writes, CLUSTER_UID);
}

function toPlan(
  remediation: string,
  params: Readonly<Record<string, unknown>>,
  writes: readonly PlannedWrite[],
  clusterUid: string,
): SpokenPlan {
  const digest = digestOf({ cluster: clusterUid, remediation, params, plan: writes });
  const vote = { decision: 'approve' as const, digest, proofs: {}, reason: 'because', at: '2026-11-30T12:00:00Z' };
  return {
    id: 'pln-1',
    incident: 'inc-1',
    finding: 'f1',
    fault: 'multi-attach-node-down',
    cluster: 'prod',
    clusterUid,
    remediation,
    params,
    title: 'Delete two pods',
    writes,
    digest,
    risk: 'high',
    dataLoss: 'none',
    requires: [],
    undo: 'none',
    requester: 'U1',
    state: 'APPROVED',
    stateReason: null,
    createdAt: '2026-11-30T12:00:00Z',
    approveBy: '2026-11-30T12:15:00Z',
    executeBy: '2026-11-30T12:25:00Z',
    epoch: 0,
    votes: [
      { user: 'U2', ...vote },
      { user: 'U3', ...vote },
    ],
    steps: writes.map((write, i) => ({
      no: i + 1,
      write,
      state: 'PENDING',
      epoch: 0,
      attempt: 0,
      at: null,
      result: null,
    })),
    successor: null,
    continues: null,
  };
}
