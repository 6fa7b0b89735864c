/**
 * The outside world, one port a neighbour. Adapters live in `src/{kube,db,queue,slack}` and are picked in `wire.ts`
 * alone. Every call that leaves the process takes an `AbortSignal` and has a deadline of its own; what it may throw is
 * `Refused`, `Transient` or `Uncertain` (domain/errors.ts), anything else is a bug.
 */

import type { Alert, AlertEntry } from './domain/alert.ts';
import type { KnownPerson } from './domain/approval.ts';
import type { AuditEvent, AuditRow } from './domain/audit.ts';
import type { Chain, FindingChain } from './domain/chain.ts';
import type { Cluster, ClusterIdentity } from './domain/cluster.ts';
import type { InboxEntry, Request } from './domain/inbox.ts';
import type { Cause, Incident, RecentIncident, StoredState } from './domain/incident.ts';
import type { BackendVolume, JsonObject } from './domain/objects.ts';
import type { Plan, StepState, Vote } from './domain/plan.ts';
import type { IncidentFacts } from './domain/postmortem.ts';
import type { Offer, ReadCost, Report } from './domain/report.ts';
import type { ResourceName } from './domain/resources.ts';
import type { ScopeRef } from './domain/scope.ts';
import type { Language, Text } from './domain/text.ts';
import type { ClaimUsage } from './domain/usage.ts';
import type { Write } from './domain/write.ts';

/** Milliseconds since 1970. For evidence and sentences; what decides in the database uses the database's clock. */
export interface Clock {
  now(): number;
}

/** Fresh ids and randomness, so that tests can name what they make. */
export interface Ids {
  /** `inc-…`, `pln-…`: short, unguessable enough to be unique, readable aloud. */
  next(prefix: 'inc' | 'pln' | 'inb' | 'lst' | 'scn'): string;
}

/** Structured log: constant message, data beside it. `error` only when an operator must act. */
export interface Log {
  debug(message: string, data?: Readonly<Record<string, unknown>>): void;
  info(message: string, data?: Readonly<Record<string, unknown>>): void;
  warn(message: string, data?: Readonly<Record<string, unknown>>): void;
  error(message: string, data?: Readonly<Record<string, unknown>>): void;
}

export interface ReadRequest {
  readonly scope: ScopeRef;
  /** The union of what will be asked; nothing else need be read. */
  readonly needs: readonly ResourceName[];
  /** Of a targeted read, kinds that are read even where nothing on the chain shows that they matter. */
  readonly always?: readonly ResourceName[];
  /** What alerts say of claims: believed where nothing measures them. */
  readonly told?: readonly ClaimUsage[];
}

export interface ReadResult {
  readonly cluster: Cluster;
  readonly cost: ReadCost;
}

/** Reads one cluster with one frozen configuration. */
export interface ClusterReader {
  /** The configured name (a context). */
  readonly name: string;
  /** uid of kube-system, read with the same credentials. Throws `Transient` when the cluster cannot be reached within 5 s. */
  identity(signal: AbortSignal): Promise<ClusterIdentity>;
  /**
   * One snapshot for a scope. A kind that could not be read (forbidden, not served, timed out, over budget) stands in
   * the snapshot's `unread`; only when the cluster cannot be reached at all it throws `Transient`.
   */
  read(request: ReadRequest, signal: AbortSignal): Promise<ReadResult>;
  /** One live object, never from a cache. Undefined only after a 404 whose body is a NotFound status; all else throws. */
  get(
    resource: ResourceName,
    namespace: string | null,
    name: string,
    signal: AbortSignal,
  ): Promise<JsonObject | undefined>;
}

/**
 * What the API server said about one write. `conflict`, `invalid` and `notFound` mean that nothing was changed; so does
 * `forbidden`. `unknown` (time-out, reset, 5xx, 429, a body that is no Status) means that it must be read.
 */
export type WriteResult =
  | { readonly kind: 'applied'; readonly object: JsonObject | undefined }
  | { readonly kind: 'conflict' | 'invalid' | 'notFound' | 'forbidden'; readonly says: Text }
  | { readonly kind: 'unknown'; readonly says: Text };

/** The only way by which a cluster is changed; only the machine in `remediate.ts` calls it. */
export interface ClusterWriter {
  /** Sends one write, once. Never retries. `dryRun` asks the API server to check it without storing anything. */
  write(
    write: Write,
    options: { readonly auditId: string; readonly dryRun: boolean },
    signal: AbortSignal,
  ): Promise<WriteResult>;
}

/** One cluster as configured: reading for diagnosis, and reading and writing with the acting credentials. */
export interface ClusterAccess {
  readonly name: string;
  readonly reader: ClusterReader;
  /** Absent in roles that must not write. */
  readonly act:
    | { readonly reader: ClusterReader; readonly writer: ClusterWriter; readonly backend?: BackendWriter }
    | undefined;
}

/** What the storage backend itself holds. Absent: faults that need it are `unknown` by name of the kind. */
export interface BackendInventory {
  list(signal: AbortSignal): Promise<readonly BackendVolume[]>;
  /**
   * One volume as it is now, as an object of kind BackendVolume whose uid is its handle. Undefined only when the backend
   * says that there is none; all else throws.
   */
  get(handle: string, signal: AbortSignal): Promise<JsonObject | undefined>;
}

/**
 * The only way by which a storage backend is changed; only the machine in `remediate.ts` calls it. It takes the writes of
 * `backendvolumes` alone: a snapshot (a patch that adds to `/spec/snapshots`) and a deletion. Answers and duties are those
 * of a `ClusterWriter`: one request, no retry, and every test of a patch is checked by the backend with it.
 */
export interface BackendWriter {
  write(
    write: Write,
    options: { readonly auditId: string; readonly dryRun: boolean },
    signal: AbortSignal,
  ): Promise<WriteResult>;
}

/**
 * Who measures how full claims are. Throws `Refused` or `Transient` with the reason; that costs the usage, never the
 * diagnosis.
 */
export interface UsageSource {
  /**
   * What is known of these claims, or of every one that is nearly full, of one cluster alone. `now` in milliseconds.
   */
  read(
    request: {
      readonly cluster: string;
      readonly claims: readonly { readonly namespace: string; readonly name: string }[] | 'nearly full';
      readonly now: number;
    },
    signal: AbortSignal,
  ): Promise<{ readonly claims: readonly ClaimUsage[]; readonly requests: number; readonly bytes: number }>;
}

/** The far end of a storage system; without a writer it is only looked at. */
export interface BackendAccess {
  readonly inventory: BackendInventory;
  readonly writer?: BackendWriter;
}

/** Slack blocks. The views make them; the port only carries them. */
export type Blocks = readonly { readonly type: string }[];

export interface MessageMetadata {
  readonly event_type: 'k8s_storage';
  readonly event_payload: Readonly<Record<string, string>>;
}

export interface ChatMessage {
  readonly text: string;
  readonly blocks: Blocks;
  readonly metadata: MessageMetadata;
}

/** Posting and asking in Slack. Posting is not idempotent: a lost reply throws `Uncertain`. */
export interface Chat {
  /** Team and bot user of the token. */
  identity(signal: AbortSignal): Promise<{ readonly teamId: string; readonly botUserId: string; readonly url: string }>;
  post(
    channel: string,
    thread: string | null,
    message: ChatMessage,
    signal: AbortSignal,
  ): Promise<{ readonly channel: string; readonly ts: string }>;
  update(channel: string, ts: string, message: ChatMessage, signal: AbortSignal): Promise<void>;
  /** Only that person sees it; it may get lost, so nothing may depend on it. */
  whisper(
    channel: string,
    user: string,
    thread: string | null,
    message: { readonly text: string; readonly blocks: Blocks },
    signal: AbortSignal,
  ): Promise<void>;
  /**
   * Gives Slack a picture and returns its id. Nobody sees it until a message shows it, so a second upload of the same is
   * only waste. Throws `Refused` when the app may not upload.
   */
  upload(picture: { readonly name: string; readonly png: Uint8Array }, signal: AbortSignal): Promise<string>;
  /** Hands Slack the bytes of a file and returns its id. Nobody sees it until it is shared. */
  sendFile(file: { readonly name: string; readonly content: Uint8Array }, signal: AbortSignal): Promise<string>;
  /**
   * Shows a file that was handed over, as a reply in a thread. `comment` is mrkdwn. Not idempotent: a lost reply throws
   * `Uncertain`.
   */
  shareFile(
    file: { readonly id: string; readonly title: string; readonly comment: string },
    to: { readonly channel: string; readonly thread: string },
    signal: AbortSignal,
  ): Promise<void>;
  /** Who somebody is, at most a minute old: for answers at the door. */
  person(user: string, signal: AbortSignal): Promise<KnownPerson>;
  /** The same, asked of Slack now: for the moments at which a vote is counted and a plan starts. */
  personNow(user: string, signal: AbortSignal): Promise<KnownPerson>;
}

/** Draws the chain of a finding. Throws `Transient` when it cannot. */
export interface Painter {
  png(chain: Chain, signal: AbortSignal): Promise<Uint8Array>;
}

export const jobKinds = ['intake', 'alert', 'diagnose', 'remediate', 'refresh', 'list', 'scan'] as const;
export type JobKind = (typeof jobKinds)[number];

/** A wake-up: which row to look at. It carries no data; a lost, late or doubled one changes nothing. */
export interface JobRef {
  readonly kind: JobKind;
  /** Inbox id, incident id, plan id or list id. */
  readonly id: string;
  /** Makes a re-enqueued job another job, so that an old one of the same name cannot swallow it. */
  readonly n: number;
}

export interface Queue {
  /** Throws `Transient` at once when the queue cannot take it; the sweep will find the row. */
  enqueue(job: JobRef, delayMs?: number): Promise<void>;
  /** Starts workers for these kinds. A handler that throws is retried by the sweep, not by the queue. */
  work(
    handlers: Readonly<Partial<Record<JobKind, (job: JobRef, signal: AbortSignal) => Promise<void>>>>,
  ): Promise<void>;
  isHealthy(): Promise<boolean>;
  close(): Promise<void>;
}

/** A plan as a diagnosis proposes it. */
export interface NewPlan {
  readonly id: string;
  readonly finding: string;
  readonly fault: string;
  readonly offer: Offer;
  readonly title: Text;
  readonly clusterUid: string;
  readonly requester: string | null;
}

export type VoteOutcome =
  | { readonly kind: 'counted'; readonly plan: Plan }
  | { readonly kind: 'quorum'; readonly plan: Plan }
  | { readonly kind: 'rejected'; readonly plan: Plan }
  /** Said to the voter alone; nothing was recorded as a vote. */
  | { readonly kind: 'refused'; readonly says: Text };

/** What a claim of a plan hands to the one process that may carry it out. */
export interface Claim {
  readonly plan: Plan;
  readonly epoch: number;
  /** True when an earlier owner may have sent something: its INTENT steps must be read before anything else. */
  readonly isTakeover: boolean;
}

/** Every later call names the epoch; a store that finds another one throws `Refused` (the lease was lost). */
export interface Fence {
  readonly plan: string;
  readonly epoch: number;
  readonly owner: string;
}

/** Work that the tables say is due, whatever the queue believes. */
export interface Due {
  readonly jobs: readonly JobRef[];
}

/** One line of a list of many incidents. */
/** How a message reaches a channel; Slack counts the two by themselves. */
export type Sending = 'post' | 'update';

export interface RushIncident
  extends Pick<Incident, 'id' | 'scope' | 'cluster' | 'channel' | 'thread' | 'severity' | 'isSilent'> {
  readonly state: StoredState;
}

/** Alerts of an incident that are alike. */
export interface IncidentAlert {
  readonly name: string;
  /** Kind, namespace unless there is none, name. */
  readonly object: readonly string[];
  readonly firing: number;
  readonly times: number;
  readonly since: string;
}

/** A plan that somebody may have to act on, and where its thread is. */
export interface LivePlan {
  readonly plan: Plan;
  readonly channel: string;
  readonly thread: string | null;
}

/** One message of a thread: what it should show, and what was posted. */
export interface PostedMessage {
  readonly key: string;
  readonly channel: string;
  readonly ts: string | null;
  /** Hash of what was last posted. */
  readonly hash: string | null;
}

/**
 * The truth. Every method is one transaction: the change, its audit event, and the flag by which the sweep finds what is
 * due stand or fall together. Time is the database's. Throws `Transient` when the database does not answer: nothing was
 * changed then, or, for a commit whose answer was lost, the next read tells.
 */
export interface Store {
  // --- doors
  /** Commits the row. `fresh` is false for a repeat of the same source and key, which has no effect. */
  takeIn(id: string, entry: InboxEntry): Promise<{ readonly id: string; readonly fresh: boolean }>;
  findRequest(
    inboxId: string,
  ): Promise<{ readonly id: string; readonly request: Request; readonly isDone: boolean } | undefined>;
  /** Marks a request as answered when its answer changes nothing else. */
  finishRequest(inboxId: string): Promise<void>;

  // --- alerts
  /** Commits what a sender delivered. `fresh` is false for a repeat of the same source, cluster and key, which has no effect. */
  takeAlerts(
    id: string,
    delivery: {
      readonly source: string;
      /** The one of the URL; null where each alert must tell. */
      readonly cluster: string | null;
      readonly key: string;
      readonly entries: readonly AlertEntry[];
    },
  ): Promise<{ readonly fresh: boolean }>;
  /**
   * Takes the oldest deliveries apart: keeps each alert, opens or joins an incident of `channel` for each object that a
   * new one is about, and tells the incidents whose last alert is over. Returns how many there were, and the incidents
   * of which a diagnosis is due.
   */
  foldAlerts(input: {
    readonly clusters: readonly string[];
    readonly channel: string;
    readonly most: number;
    newId(prefix: 'inc' | 'lst'): string;
  }): Promise<{ readonly deliveries: number; readonly incidents: readonly string[] }>;
  /** The alerts of an incident by name and object, oldest first. */
  alertsOfIncident(incident: string, limit: number): Promise<readonly IncidentAlert[]>;
  /** Alerts of these names about a cluster that still fire, the newest first; a few hundred at most. */
  firingAlerts(
    cluster: string,
    names: readonly string[],
  ): Promise<readonly Pick<Alert, 'name' | 'severity' | 'labels' | 'annotations' | 'values' | 'startsAt'>[]>;
  /** Whether an alert of the incident still fires, and whether one is about something that is storage itself. */
  firingOf(incident: string): Promise<{ readonly isFiring: boolean; readonly isStorage: boolean }>;

  // --- incidents
  /** Opens an incident, or joins the open one of the same cluster and scope; asks for a diagnosis either way. */
  openIncident(input: {
    readonly inboxId: string;
    readonly id: string;
    readonly cluster: string;
    readonly scope: ScopeRef;
    readonly requester: string | null;
    readonly channel: string;
    /** Of the thread, where it is known. */
    readonly language: Language | null;
  }): Promise<{ readonly incident: Incident; readonly isJoined: boolean }>;
  findIncident(id: string): Promise<Incident | undefined>;
  findIncidentOfThread(channel: string, thread: string): Promise<Incident | undefined>;
  listIncidents(options: { readonly onlyOpen: boolean; readonly limit: number }): Promise<readonly Incident[]>;
  /** Asks for another diagnosis; makes nobody requester. */
  askRecheck(inboxId: string, incident: string, actor: string): Promise<void>;
  /**
   * Stores a report and its plans. A plan of the incident that still waits for approval and has the same digest stays
   * with its votes; the others that wait are SUPERSEDED. Resolves the incident when `state` says so and nothing is being
   * carried out. An incident that no person opened and whose cause is another one's joins that one: `shown` is the
   * incident whose thread tells of it.
   */
  recordDiagnosis(input: {
    readonly incident: string;
    readonly report: Report;
    /** What of it the thread draws; nothing when left out. */
    readonly chains?: readonly FindingChain[];
    readonly plans: readonly NewPlan[];
    readonly state: 'diagnosed' | 'resolved';
    readonly recheckSeconds: number | undefined;
    /** Whether there is something to show. Absent: yes. */
    readonly isWorthAThread?: boolean;
    /** When the quiet hours end, RFC 3339; null outside of them. What is critical does not wait for it. */
    readonly quietUntil?: string | null;
    readonly approvalTtlMs: number;
    /**
     * `diagnoses` of the incident when the reading began, so that who asks in the meantime is not answered by it.
     * Absent: it answers everybody who has asked.
     */
    readonly asked?: number;
  }): Promise<{ readonly shown: string }>;
  /**
   * The diagnosis could not be made; the thread says why. `isOver`: and it need not be made any more, as what it was about
   * is gone.
   */
  recordProblem(
    incident: string,
    problem: Text,
    options?: { readonly recheckSeconds?: number; readonly isOver?: boolean },
  ): Promise<void>;
  /** `channel` is the id that Slack gave for the name that was configured. */
  recordThread(incident: string, ts: string, channel?: string): Promise<void>;

  // --- looking back
  /**
   * What is open or was resolved within that time: what is open first, the most harmful first, then the newest, `limit` at
   * most. `seen` is the last report, for one that is over the first that found something. `open` and `ended` count all.
   */
  listRecent(options: { readonly withinMs: number; readonly limit: number }): Promise<{
    readonly incidents: readonly RecentIncident[];
    readonly open: number;
    readonly ended: number;
  }>;
  /** Everything that is kept of an incident, or of the one in which it went on. */
  incidentFacts(incident: string): Promise<IncidentFacts | undefined>;
  /**
   * Takes the file of that state of an incident, named by the hash of what it says, for so long. `there`: the thread has
   * it. `busy`: somebody makes it now. `uncertain`: somebody asked Slack to show it and Slack's answer was lost; whoever
   * asks the next time begins anew.
   */
  beginPostmortem(incident: string, hash: string, leaseMs: number): Promise<'begun' | 'there' | 'busy' | 'uncertain'>;
  /** Commits that Slack is asked to show it now. */
  sharePostmortem(incident: string, hash: string): Promise<void>;
  /** Whether the thread has it. If not, whoever asks the next time begins anew. */
  endPostmortem(incident: string, hash: string, isShared: boolean): Promise<void>;
  /** Removes deliveries of alerts that were taken apart so long ago; returns how many. */
  purge(options: { readonly deliveriesAfterMs: number }): Promise<number>;

  // --- plans
  findPlan(id: string): Promise<Plan | undefined>;
  plansOfIncident(incident: string): Promise<readonly Plan[]>;
  /** Plans that wait for votes and are in time, or are being carried out or halted; the oldest first, each with its thread. */
  livePlans(limit: number): Promise<readonly LivePlan[]>;
  /**
   * Counts a vote under the row's lock and, at the quorum, takes the target locks: if another plan holds one, the vote
   * is refused with that plan's id. Expiry, digest and double votes are checked here again, whatever the caller knew.
   */
  castVote(input: {
    readonly inboxId: string;
    readonly plan: string;
    readonly vote: Omit<Vote, 'at'>;
    readonly executionTtlMs: number;
  }): Promise<VoteOutcome>;
  /** Records that a vote was not taken, for the audit trail. */
  refuseVote(input: {
    readonly inboxId: string;
    readonly plan: string;
    readonly user: string;
    readonly says: Text;
  }): Promise<void>;
  /** Ends a plan that nobody has begun (`EXPIRED`, `REJECTED` for lost eligibility, `SUPERSEDED` for drift, `CANCELLED`). */
  endUnbegun(plan: string, to: 'EXPIRED' | 'REJECTED' | 'SUPERSEDED' | 'CANCELLED', says: Text): Promise<void>;
  /** Expires every plan whose time is over; returns how many. */
  expireDue(): Promise<number>;

  // --- execution (the remediator alone)
  /** Takes the plan for this owner if it is APPROVED and in time, or EXECUTING/VERIFYING with a lease that ran out. */
  claim(plan: string, owner: string, leaseMs: number): Promise<Claim | undefined>;
  renew(fence: Fence, leaseMs: number): Promise<void>;
  /** Commits that a step is about to be sent. Throws `Refused` when paused or fenced: then nothing may be sent. */
  intent(
    fence: Fence,
    step: number,
    input: { readonly auditId: string; readonly before: JsonObject | null; readonly leaseMs: number },
  ): Promise<void>;
  outcome(
    fence: Fence,
    step: number,
    input: {
      readonly state: StepState;
      readonly result: Text;
      readonly after: JsonObject | null;
      readonly leaseMs: number;
    },
  ): Promise<void>;
  /** All steps are done; the goal must now hold for the settle time. */
  beginVerifying(fence: Fence, leaseMs: number): Promise<void>;
  /** Ends or parks the plan. Locks are released by every terminal state and kept by HALTED and NEEDS_ATTENTION. */
  finish(
    fence: Fence,
    to: 'SUCCEEDED' | 'FAILED' | 'NEEDS_ATTENTION' | 'HALTED' | 'SUPERSEDED',
    says: Text,
  ): Promise<void>;
  /** Gives the lease back without a change of state, so that the sweep tries again soon. */
  release(fence: Fence): Promise<void>;
  /** Since when the goal has held without a break, in milliseconds; 0 when it has just been seen for the first time. Reset by `holds: false`. */
  goalHeld(fence: Fence, holds: boolean): Promise<number>;

  // --- pause
  pause(inboxId: string, cluster: string | null, actor: string): Promise<void>;
  resume(inboxId: string, cluster: string | null, actor: string): Promise<void>;
  pausedBy(cluster: string): Promise<{ readonly actor: string; readonly at: string } | undefined>;

  // --- thread
  /**
   * Incidents whose thread is behind what the tables say carry a higher `wanted` than `shown`. Undefined when it is not
   * behind, or when another process brings it up to date now (it has 20 s): the sweep finds it again.
   */
  beginRefresh(incident: string): Promise<{ readonly wanted: number } | undefined>;
  endRefresh(incident: string, shown: number): Promise<void>;
  findMessages(incident: string): Promise<readonly PostedMessage[]>;
  saveMessage(incident: string, message: PostedMessage): Promise<void>;
  /** The files of those pictures that Slack has, by hash. */
  findPictures(hashes: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** A change that the thread must show. The first file wins: a second upload of one picture is never shown. */
  savePicture(incident: string, hash: string, file: string): Promise<void>;

  // --- the bot's own look
  /** Which clusters are looked at, and how often; 0 is never. Rows of other clusters go. */
  planScans(clusters: readonly string[], everyMs: number, newId: () => string): Promise<void>;
  /** Takes a look that is due; the next one is due after the period. Undefined when it is not. */
  beginScan(id: string): Promise<string | undefined>;
  /**
   * What a look saw: `seen` are the critical causes, each with the object by which a diagnosis finds it; `all` are the
   * causes of everything that was found. Returns the incidents of which a diagnosis is due.
   */
  recordScan(input: {
    readonly cluster: string;
    readonly channel: string;
    readonly seen: readonly { readonly cause: Cause; readonly scope: ScopeRef }[];
    readonly all: readonly Cause[];
    newId(prefix: 'inc' | 'lst'): string;
  }): Promise<readonly string[]>;

  // --- noise
  /**
   * Whether the channel takes another message now: 0 when it does, and it takes no other one until `endTurn`, or some
   * seconds later if that never comes; else in how many milliseconds it is likely to be this incident's turn.
   */
  takeTurn(incident: string, channel: string, kind: Sending): Promise<number>;
  /** The message is out, or will not go: the next one may follow in a second. */
  endTurn(channel: string, kind: Sending): Promise<void>;
  /** Gives the thread back and leaves it alone for that long. */
  postpone(incident: string, ms: number): Promise<void>;
  /** New threads about the object wait until then; what stands is kept true. */
  mute(input: {
    readonly inboxId: string;
    readonly cluster: string;
    readonly scope: ScopeRef;
    readonly actor: string;
    readonly forMs: number;
  }): Promise<void>;
  unmute(input: {
    readonly inboxId: string;
    readonly cluster: string;
    readonly scope: ScopeRef;
    readonly actor: string;
  }): Promise<{ readonly wasMuted: boolean }>;
  /** A list of many incidents, for one process for 20 s. Undefined when it is not due. */
  beginList(id: string): Promise<
    | {
        readonly channel: string;
        readonly ts: string | null;
        readonly hash: string | null;
        readonly incidents: readonly RushIncident[];
      }
    | undefined
  >;
  /** What was shown; nulls where nothing was. Looks again after `waitMs`, as long as something may change. */
  endList(
    id: string,
    shown: {
      readonly channel: string | null;
      readonly ts: string | null;
      readonly hash: string | null;
      readonly waitMs: number;
    },
  ): Promise<void>;
  /** `isNew`: nobody has been told yet. */
  noteChannelTrouble(channel: string, says: string): Promise<{ readonly isNew: boolean }>;
  clearChannelTrouble(channel: string): Promise<void>;
  channelTroubles(): Promise<readonly { readonly channel: string; readonly says: string }[]>;

  // --- the rest
  /**
   * What is due now. Each call counts the rows up, so that a re-enqueued job gets a new name. What was handed out within
   * `againAfterMs` (0 unless said) is left out, so that a sweep does not pile up jobs for what is being done.
   */
  due(options?: { readonly againAfterMs?: number }): Promise<Due>;
  audit(event: AuditEvent): Promise<void>;
  /** Rows in order, streamed. */
  auditRows(): AsyncIterable<AuditRow>;
  /** The newest, oldest first. `object` is `KIND/NAME` or `KIND/NAMESPACE/NAME`, the kind in any of its words. */
  auditOf(filter: {
    readonly incident?: string;
    readonly object?: string;
    readonly limit: number;
  }): Promise<readonly AuditRow[]>;
  isHealthy(): Promise<boolean>;
  close(): Promise<void>;
}
