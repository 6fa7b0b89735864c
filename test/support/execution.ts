/**
 * A small world for the machine that carries plans out: one API server in memory that journals every effect, one store in
 * memory with the same guards as the real one, and a checker of what must hold in the end. Each guard can be taken out,
 * to show that the checker sees it.
 */
import { applyPatch, type Operation } from 'rfc6902';
import { z } from 'zod';
import { Cluster } from '../../src/domain/cluster.ts';
import { Refused } from '../../src/domain/errors.ts';
import { emptyObjects, type JsonObject } from '../../src/domain/objects.ts';
import { mayBecome, type Plan, type PlanState, type Step, type StepState } from '../../src/domain/plan.ts';
import { defineRemediation } from '../../src/domain/remediation.ts';
import { digestOf } from '../../src/domain/report.ts';
import { deleteObject, toPlanned, valueAt, type Write } from '../../src/domain/write.ts';
import type { FaultHook, FaultPoint } from '../../src/fault-points.ts';
import type { ClusterAccess, Fence, WriteResult } from '../../src/ports.ts';
import type { ExecutionStore, RemediateDeps } from '../../src/remediate.ts';

/** Thrown by a fault point: the process is gone, whatever it was doing. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

export type Guard = 'read' | 'uid' | 'epoch' | 'compare-and-set' | 'intent';

export interface Effect {
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
  doc: { does: 'Deletes two pods.', undo: 'none', caution: 'For tests.' },
  title: () => 'Delete two pods',
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
  readonly replies: (WriteResult | 'lost' | 'throttled')[] = [];
  dryRun: WriteResult = { kind: 'applied', object: undefined };
  clusterUid: string | null = CLUSTER_UID;
  paused = false;
  /** For how many more snapshots the pods cannot be read. */
  blindSnapshots = 0;
  plan: Plan;
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

  constructor(options: { readonly without?: readonly Guard[] } = {}) {
    this.without = new Set(options.without ?? []);
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
      act: { reader, writer: { write: (write, options) => Promise.resolve(this.write(write, options)) } },
    };
  }

  /** Without the read guard the executor believes that the planned object is there, whatever is. */
  blind(name: string): JsonObject {
    const step = this.plan.steps.find((candidate) => candidate.write.name === name);
    return { metadata: { name, namespace: 'shop', uid: step?.write.uid ?? '' } };
  }

  snapshot(): Cluster {
    return new Cluster({
      identity: { name: 'prod', uid: CLUSTER_UID },
      now: this.nowMs,
      objects: emptyObjects,
      unread: this.blindSnapshots-- > 0 ? [{ resource: 'pods', reason: 'timed out' }] : [],
      podCoverage: { kind: 'all' },
      source: 'live',
    });
  }

  write(write: Write, { auditId, dryRun }: { readonly auditId: string; readonly dryRun: boolean }): WriteResult {
    if (dryRun) {
      this.onDryRun();
      return this.dryRun;
    }
    const scripted = this.replies.shift();
    if (scripted === 'throttled') return { kind: 'unknown', says: '429' };
    if (scripted !== undefined && scripted !== 'lost') return scripted;
    const result = this.#apply(write, auditId);
    return scripted === 'lost' ? { kind: 'unknown', says: 'connection reset' } : result;
  }

  #apply(write: Write, auditId: string): WriteResult {
    const key = `${write.resource}/${write.namespace ?? ''}/${write.name}`;
    const live = this.objects.get(key);
    const uid = uidOf(live);
    if (live === undefined || uid === undefined) return { kind: 'notFound', says: 'not found' };
    if (uid !== write.uid && !this.without.has('uid'))
      return { kind: 'conflict', says: 'the UID in the precondition does not match' };
    this.effects.push({ verb: write.verb, name: write.name, uid, auditId });
    if (write.verb === 'patch') {
      const copy = structuredClone(live) as JsonObject;
      applyPatch(copy, write.body as unknown as Operation[]);
      this.objects.set(key, copy);
      return { kind: 'applied', object: copy };
    }
    this.objects.delete(key);
    if (this.remakes) this.#makePod(write.name);
    return { kind: 'applied', object: undefined };
  }

  get store(): ExecutionStore {
    const { without } = this;
    const fence = ({ epoch }: Fence) => {
      if (!without.has('epoch') && epoch !== this.plan.epoch) throw new Refused('another owner has the lease');
    };
    return {
      findPlan: () => Promise.resolve(this.plan),
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
        return Promise.resolve({ plan: this.plan, epoch: this.plan.epoch, isTakeover });
      },
      renew: async (held) => fence(held),
      intent: async (held, no, { auditId }) => {
        fence(held);
        if (this.paused) throw new Refused('paused');
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

  #move(to: PlanState, says: string | null): void {
    this.plan = { ...this.plan, state: to, stateReason: says };
    this.history.push(to);
  }

  #step(no: number, state: StepState, epoch: number, isAttempt: boolean): void {
    const steps = this.plan.steps.map(
      (step): Step => (step.no === no ? { ...step, state, epoch, attempt: step.attempt + (isAttempt ? 1 : 0) } : step),
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
      remediations: [deleteTwoPods],
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
    for (const effect of this.effects)
      if (!planned.has(effect.uid)) faults.push(`effect on ${effect.uid}, which is in no plan`);
    for (const step of this.plan.steps) {
      const count = this.effects.filter((effect) => effect.uid === step.write.uid).length;
      if (count > 1) faults.push(`step ${step.no} happened ${count} times`);
      const isLeft = [...this.objects.values()].some((object) => uidOf(object) === step.write.uid);
      if (isLeft && this.plan.state === 'SUCCEEDED') faults.push(`step ${step.no} is lost`);
    }
    for (const effect of this.effects) {
      if (!this.intents.some((intent) => intent.auditId === effect.auditId))
        faults.push(`effect ${effect.auditId} has no intent`);
    }
    const epochs = this.intents.map((intent) => intent.epoch);
    if (epochs.some((epoch, i) => i > 0 && epoch < (epochs[i - 1] ?? 0)))
      faults.push('an older owner went on after a newer one');
    for (const step of this.plan.steps) {
      const isDone = this.effects.some((effect) => effect.uid === step.write.uid);
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
  const isGuest = user.startsWith('G');
  return {
    id: user,
    teamId: 'T1',
    name: user,
    isDeleted: false,
    isBot: false,
    isRestricted: isGuest,
    isUltraRestricted: false,
    isStranger: false,
    locale: undefined,
  };
}

function uidOf(object: JsonObject | undefined): string | undefined {
  const uid = object && valueAt(object, '/metadata/uid');
  return typeof uid === 'string' ? uid : undefined;
}

function planFor(uids: readonly string[]): Plan {
  const params = { uids: [...uids] };
  const writes = uids.map((uid, i) =>
    toPlanned(deleteObject({ resource: 'pods', namespace: 'shop', name: `p${i}`, uid })),
  );
  const digest = digestOf({ cluster: CLUSTER_UID, remediation: 'delete-two-pods', params, plan: writes });
  const vote = { decision: 'approve' as const, digest, proofs: {}, reason: 'because', at: '2026-11-30T12:00:00Z' };
  return {
    id: 'pln-1',
    incident: 'inc-1',
    finding: 'f1',
    fault: 'multi-attach-node-down',
    cluster: 'prod',
    clusterUid: CLUSTER_UID,
    remediation: 'delete-two-pods',
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
