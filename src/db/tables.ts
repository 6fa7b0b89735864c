import type { Generated, GeneratedAlways } from 'kysely';
import type { Severity } from '../domain/fault.ts';
import type { Origin, StoredState } from '../domain/incident.ts';
import type { PlanState, StepState } from '../domain/plan.ts';
import type { Risk } from '../domain/remediation.ts';
import type { Language } from '../domain/text.ts';

/** The tables as `migrations/` makes them. Columns that hold JSON are text: what was approved is kept letter for letter. */
export interface Tables {
  inbox: InboxTable;
  incident: IncidentTable;
  plan: PlanTable;
  plan_target: PlanTargetTable;
  plan_state: PlanStateTable;
  step: StepTable;
  vote: VoteTable;
  target_lock: TargetLockTable;
  pause: PauseTable;
  message: MessageTable;
  picture: PictureTable;
  audit: AuditTable;
  incident_cause: IncidentCauseTable;
  incident_object: IncidentObjectTable;
  delivery: DeliveryTable;
  alert: AlertTable;
  alert_unclear: AlertUnclearTable;
  mute: MuteTable;
  pace: PaceTable;
  rush: RushTable;
  channel_trouble: ChannelTroubleTable;
  scan: ScanTable;
  diagnosis: DiagnosisTable;
  postmortem: PostmortemTable;
}

interface InboxTable {
  id: string;
  source: string;
  key: string;
  body: string;
  received_at: Generated<Date>;
  done_at: Date | null;
  /** What was answered, as JSON, so that a repeat gives the same answer. */
  result: string | null;
  woken_at: Date | null;
  enqueue_no: Generated<number>;
}

interface IncidentTable {
  id: string;
  cluster: string;
  cluster_uid: string | null;
  scope: string;
  scope_key: string;
  requester: string | null;
  channel: string;
  language: Language | null;
  thread: string | null;
  state: StoredState;
  opened_at: Generated<Date>;
  resolved_at: Date | null;
  recheck_at: Date | null;
  report: string | null;
  /** The chains of the report's findings that the thread draws, as JSON. */
  chains: string | null;
  problem: string | null;
  /** Diagnoses asked for so far, and the last of them that was answered. */
  asked_no: Generated<number>;
  answered_no: Generated<number>;
  /** Changes that the thread must show, and the last of them that it shows. */
  wanted: Generated<number>;
  shown: Generated<number>;
  refresh_until: Date | null;
  diagnose_woken_at: Date | null;
  diagnose_no: Generated<number>;
  refresh_woken_at: Date | null;
  refresh_no: Generated<number>;
  origin: Generated<Origin>;
  joined_into: string | null;
  reopened_no: Generated<number>;
  severity: Severity | null;
  /** Nothing to show yet, or nothing at all. */
  silent: Generated<boolean>;
  /** Its first message waits until then. */
  hold_until: Date | null;
  /** When the last diagnosis was recorded. */
  diagnosed_at: Date | null;
  rush: string | null;
}

interface IncidentCauseTable {
  incident: string;
  /** 0 is the cause of the scope's own trouble. */
  no: number;
  cluster: string;
  cause: string;
}

interface IncidentObjectTable {
  incident: string;
  cluster: string;
  object_key: string;
  ref: string;
  affected: boolean;
  first_at: Generated<Date>;
  last_at: Generated<Date>;
}

interface DeliveryTable {
  id: string;
  source: string;
  /** The cluster of the URL; empty where the alerts themselves must tell. */
  cluster: string;
  key: string;
  body: string;
  received_at: Generated<Date>;
  done_at: Date | null;
}

interface AlertTable {
  cluster: string;
  source: string;
  fingerprint: string;
  starts_at: Date;
  ends_at: Date | null;
  status: 'firing' | 'resolved';
  name: string;
  severity: Severity;
  labels: string;
  annotations: string;
  measured: string;
  scope_key: string | null;
  /** It is about something that is storage itself. */
  storage: Generated<boolean>;
  outcome: 'incident' | 'notStorage' | 'unclear' | 'over' | 'healthy';
  incident: string | null;
  seen_at: Generated<Date>;
}

interface AlertUnclearTable {
  source: string;
  key: string;
  says: string;
  body: string;
  seen_no: Generated<number>;
  seen_at: Generated<Date>;
}

interface MuteTable {
  cluster: string;
  scope_key: string;
  scope: string;
  actor: string;
  until: Date;
  at: Generated<Date>;
}

interface PaceTable {
  channel: string;
  kind: string;
  next_at: Date;
}

interface RushTable {
  id: string;
  channel: string;
  ts: string | null;
  hash: string | null;
  opened_at: Generated<Date>;
  until: Date;
  look_at: Date | null;
  woken_at: Date | null;
  enqueue_no: Generated<number>;
}

interface ChannelTroubleTable {
  channel: string;
  says: string;
  since: Generated<Date>;
  told_at: Date | null;
}

interface ScanTable {
  cluster: string;
  id: string;
  every_ms: number;
  due_at: Generated<Date>;
  done_at: Date | null;
  woken_at: Date | null;
  enqueue_no: Generated<number>;
}

interface PlanTable {
  id: string;
  incident: string;
  finding: string;
  fault: string;
  cluster: string;
  cluster_uid: string;
  remediation: string;
  params: string;
  title: string;
  writes: string;
  digest: string;
  risk: Risk;
  data_loss: 'none' | 'possible' | 'certain';
  requires: string;
  undo: string;
  requester: string | null;
  /** The halted plan whose remaining steps these are. */
  continues: string | null;
  created_at: Generated<Date>;
}

interface PlanTargetTable {
  plan: string;
  cluster_uid: string;
  /** `uid:…`, or `new:resource/namespace/name` for what a create will make. */
  target: string;
  resource: string;
  namespace: string | null;
  name: string;
}

interface PlanStateTable {
  plan: string;
  incident: string;
  cluster: string;
  state: PlanState;
  state_reason: string | null;
  approve_by: Date;
  execute_by: Date | null;
  epoch: Generated<number>;
  owner: string | null;
  lease_until: Date | null;
  goal_since: Date | null;
  goal_seen_at: Date | null;
  successor: string | null;
  woken_at: Date | null;
  enqueue_no: Generated<number>;
}

interface StepTable {
  plan: string;
  no: number;
  write: string;
  state: StepState;
  epoch: Generated<number>;
  attempt: Generated<number>;
  audit_id: string | null;
  before: string | null;
  after: string | null;
  result: string | null;
  at: Date | null;
}

interface VoteTable {
  plan: string;
  person: string;
  decision: 'approve' | 'reject';
  digest: string;
  proofs: string;
  reason: string | null;
  inbox: string;
  at: Generated<Date>;
}

interface TargetLockTable {
  cluster_uid: string;
  target: string;
  plan: string;
  at: Generated<Date>;
}

interface PauseTable {
  /** Empty: every cluster. */
  cluster: string;
  actor: string;
  at: Generated<Date>;
}

interface MessageTable {
  incident: string;
  key: string;
  channel: string;
  ts: string | null;
  hash: string | null;
  no: GeneratedAlways<number>;
}

interface PictureTable {
  /** Of the chain that it shows and of how that is drawn. */
  hash: string;
  /** Slack's id of the file. */
  file: string;
  at: Generated<Date>;
}

interface DiagnosisTable {
  incident: string;
  no: GeneratedAlways<number>;
  at: Generated<Date>;
  /** When the same was found last. */
  last_at: Generated<Date>;
  /** Hash of what was found, whatever its numbers say. */
  shape: string;
  /** Without offers and manual steps. */
  report: string;
}

interface PostmortemTable {
  incident: string;
  hash: string;
  lease_until: Date;
  /** Slack is being asked to show it: from then on a repeat could be a second file. */
  sharing_at: Date | null;
  shared_at: Date | null;
}

interface AuditTable {
  /** A bigint, which the driver hands over as text. */
  seq: string;
  prev: string;
  hash: string;
  body: string;
  incident: string | null;
  plan: string | null;
}
