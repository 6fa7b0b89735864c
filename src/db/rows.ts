import { type Kysely, type Selectable, sql } from 'kysely';
import { z } from 'zod';
import type { FindingChain } from '../domain/chain.ts';
import { type Incident, shownState } from '../domain/incident.ts';
import type { JsonObject, JsonValue } from '../domain/objects.ts';
import { type Plan, type Step, stepStates, type Vote } from '../domain/plan.ts';
import { type Proof, proofs } from '../domain/remediation.ts';
import type { Report } from '../domain/report.ts';
import type { ScopeRef } from '../domain/scope.ts';
import { storedReport } from '../domain/spoken.ts';
import type { Text, Word } from '../domain/text.ts';
import type { PlannedWrite } from '../domain/write.ts';
import type { Tables } from './tables.ts';
import { readSentence } from './text.ts';

const jsonValue: z.ZodType<JsonValue> = z.json();
const jsonObject: z.ZodType<JsonObject> = z.record(z.string(), jsonValue);

const plannedWrite: z.ZodType<PlannedWrite> = z.object({
  verb: z.string(),
  resource: z.string(),
  namespace: z.string().nullable(),
  name: z.string(),
  uid: z.string().nullable(),
  body: jsonValue,
});

const isProof = (id: string): id is Proof => Object.hasOwn(proofs, id);
const proof = z.string().refine(isProof);
const proofWords: z.ZodType<Readonly<Partial<Record<Proof, string>>>> = z.partialRecord(proof, z.string());

/** Own rows were written from these very types, so a report and a scope are trusted as a whole. */
const report = z.custom<Report<Word>>((value) => jsonObject.safeParse(value).success);
const chains = z.custom<readonly FindingChain[]>((value) => Array.isArray(value));
const scopeRef = z.custom<ScopeRef>((value) => z.looseObject({ kind: z.string() }).safeParse(value).success);

/** A report, and the scope of an incident or of a mute, as it was stored. */
export const reportOf = (text: string): Report => storedReport(report.parse(JSON.parse(text)));
export const scopeOf = (text: string): ScopeRef => scopeRef.parse(JSON.parse(text));
export const parseWrites = (text: string): readonly PlannedWrite[] => z.array(plannedWrite).parse(JSON.parse(text));
export const parseParams = (text: string): JsonObject => jsonObject.parse(JSON.parse(text));

/** A row, and whether a plan of it is being carried out. */
export type IncidentRow = Selectable<Tables['incident']> & { readonly is_acting: boolean; readonly read_at: Date };

/** Reads rows with what `incidentOf` needs. */
export function selectIncidents(db: Kysely<Tables>) {
  return db
    .selectFrom('incident')
    .selectAll()
    .select(
      sql<boolean>`exists (select from plan_state where plan_state.incident = incident.id
        and plan_state.state in ('APPROVED', 'EXECUTING', 'VERIFYING'))`.as('is_acting'),
    )
    .select(sql<Date>`clock_timestamp()`.as('read_at'));
}

export function incidentOf(row: IncidentRow): Incident {
  return {
    id: row.id,
    cluster: row.cluster,
    clusterUid: row.cluster_uid,
    scope: scopeRef.parse(JSON.parse(row.scope)),
    origin: row.origin,
    requester: row.requester,
    channel: row.channel,
    language: row.language,
    thread: row.thread,
    state: shownState(row.state, row.is_acting),
    openedAt: row.opened_at.toISOString(),
    resolvedAt: timeOf(row.resolved_at),
    recheckAt: timeOf(row.recheck_at),
    report: row.report === null ? null : reportOf(row.report),
    chains: row.chains === null ? [] : chains.parse(JSON.parse(row.chains)),
    problem: maybeSentence(row.problem),
    diagnoses: row.asked_no,
    answered: row.answered_no,
    joinedInto: row.joined_into,
    reopened: row.reopened_no,
    severity: row.severity,
    isSilent: row.silent,
  };
}

/** A plan as stored, and what the database's clock says of it at this moment. */
export interface StoredPlan {
  readonly plan: Plan;
  readonly owner: string | null;
  /** The requests whose votes stand, with what each decided. */
  readonly counted: ReadonlyMap<string, Vote['decision']>;
  readonly isApprovalOver: boolean;
  readonly isStartOver: boolean;
  /** Nobody holds it, or the lease of who did ran out. */
  readonly isFree: boolean;
}

const storedVote = z.object({
  person: z.string(),
  decision: z.enum(['approve', 'reject']),
  digest: z.string(),
  proofs: z.string(),
  reason: z.string().nullable(),
  inbox: z.string(),
  at: z.string(),
});

const storedStep = z.object({
  no: z.number(),
  write: z.string(),
  state: z.enum(stepStates),
  epoch: z.number(),
  attempt: z.number(),
  result: z.string().nullable(),
  at: z.string().nullable(),
});

/** Plans in the order in which they were made, each with its votes and steps, in one question. */
export async function loadPlans(
  db: Kysely<Tables>,
  by: { readonly id: string } | { readonly incident: string } | { readonly ids: readonly string[] },
): Promise<readonly StoredPlan[]> {
  const found = db
    .selectFrom('plan')
    .innerJoin('plan_state', 'plan_state.plan', 'plan.id')
    .selectAll('plan')
    .select(['state', 'state_reason', 'approve_by', 'execute_by', 'epoch', 'owner', 'successor'])
    .select([
      sql<boolean>`approve_by <= clock_timestamp()`.as('is_approval_over'),
      sql<boolean>`coalesce(execute_by <= clock_timestamp(), false)`.as('is_start_over'),
      sql<boolean>`coalesce(lease_until < clock_timestamp(), true)`.as('is_free'),
      sql<unknown>`(select coalesce(json_agg(vote order by vote.at, person), '[]') from vote where vote.plan = plan.id)`.as(
        'votes',
      ),
      // The saved copies stay where they are: they can be large, and nobody who asks for a plan needs them.
      sql<unknown>`(select coalesce(json_agg(json_build_object('no', no, 'write', write, 'state', step.state, 'epoch', step.epoch,
        'attempt', attempt, 'result', result, 'at', step.at) order by no), '[]') from step where step.plan = plan.id)`.as(
        'steps',
      ),
    ])
    .orderBy('plan.created_at')
    .orderBy('plan.id');
  const rows = await ('id' in by
    ? found.where('plan.id', '=', by.id)
    : 'ids' in by
      ? found.where('plan.id', 'in', by.ids)
      : found.where('plan.incident', '=', by.incident)
  ).execute();
  return rows.map((row) => {
    const votes = z.array(storedVote).parse(row.votes);
    return {
      plan: {
        id: row.id,
        incident: row.incident,
        finding: row.finding,
        fault: row.fault,
        cluster: row.cluster,
        clusterUid: row.cluster_uid,
        remediation: row.remediation,
        params: parseParams(row.params),
        title: readSentence(row.title),
        writes: parseWrites(row.writes),
        digest: row.digest,
        risk: row.risk,
        dataLoss: row.data_loss,
        requires: z.array(proof).parse(JSON.parse(row.requires)),
        undo: readSentence(row.undo),
        requester: row.requester,
        state: row.state,
        stateReason: maybeSentence(row.state_reason),
        createdAt: row.created_at.toISOString(),
        approveBy: row.approve_by.toISOString(),
        executeBy: timeOf(row.execute_by),
        epoch: row.epoch,
        votes: votes.map(voteOf),
        steps: z.array(storedStep).parse(row.steps).map(stepOf),
        successor: row.successor,
        continues: row.continues,
      },
      owner: row.owner,
      counted: new Map(votes.map(({ inbox, decision }) => [inbox, decision])),
      isApprovalOver: row.is_approval_over,
      isStartOver: row.is_start_over,
      isFree: row.is_free,
    };
  });
}

function voteOf(row: z.infer<typeof storedVote>): Vote {
  return {
    user: row.person,
    decision: row.decision,
    digest: row.digest,
    proofs: proofWords.parse(JSON.parse(row.proofs)),
    reason: row.reason,
    at: new Date(row.at).toISOString(),
  };
}

function stepOf(row: z.infer<typeof storedStep>): Step {
  return {
    no: row.no,
    write: plannedWrite.parse(JSON.parse(row.write)),
    state: row.state,
    epoch: row.epoch,
    attempt: row.attempt,
    at: row.at === null ? null : new Date(row.at).toISOString(),
    result: maybeSentence(row.result),
  };
}

function timeOf(date: Date | null): string | null {
  return date === null ? null : date.toISOString();
}

function maybeSentence(stored: string | null): Text | null {
  return stored === null ? null : readSentence(stored);
}
