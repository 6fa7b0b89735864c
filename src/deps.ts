import type { Catalogue } from './diagnose.ts';
import type { QuietHours } from './domain/quiet-hours.ts';
import type { Language } from './domain/text.ts';
import type { FaultHook } from './fault-points.ts';
import type { Chat, Clock, ClusterAccess, Ids, Log, Painter, Queue, Store } from './ports.ts';

/** Everything a job may use. Made by `wire.ts`, or by a test with fakes at the edges. */
export interface Deps {
  readonly store: Store;
  readonly queue: Queue;
  readonly chat: Chat;
  readonly painter: Painter;
  /** By configured name, in the order of configuration. */
  readonly clusters: ReadonlyMap<string, ClusterAccess>;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Who holds leases: one per process. */
  readonly owner: string;
  readonly settings: {
    readonly approvalTtlMs: number;
    readonly executionTtlMs: number;
    readonly settleMs: number;
    readonly leaseMs: number;
    readonly pollMs: number;
    /** Of threads that nobody asked for, and of people whose own is not known. */
    readonly language: Language;
    /** Where incidents that nobody asked for have their threads; undefined: nowhere. */
    readonly incidentChannel: string | undefined;
    /** Slack user id of who is told when a channel cannot be written to. */
    readonly admin: string | undefined;
    readonly quietHours: QuietHours | undefined;
  };
  readonly fault: FaultHook;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}
