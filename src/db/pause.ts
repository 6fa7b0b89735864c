import type { Kysely } from 'kysely';
import type { Plan } from '../domain/plan.ts';
import { digestOf } from '../domain/report.ts';
import type { Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { askDiagnosis, closeRequest, lockIncidents, movePlan, openRequest, readLocked } from './moves.ts';
import { createPlan } from './new-plan.ts';
import type { Tables } from './tables.ts';

type Pause = Pick<Store, 'pause' | 'resume' | 'pausedBy'>;

/** The row that stands for every cluster. */
const EVERYWHERE = '';

export function pauseOf(database: Database): Pause {
  return {
    pause: (inboxId, cluster, actor) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return;
        await tx.db
          .insertInto('pause')
          .values({ cluster: cluster ?? EVERYWHERE, actor })
          .onConflict((conflict) => conflict.column('cluster').doNothing())
          .execute();
        await closeRequest(tx, inboxId);
        tx.book.tell({ kind: 'paused', actor, data: { cluster } });
      }),

    resume: (inboxId, cluster, actor) =>
      database.withTx(async (tx) => {
        const { isDone } = await openRequest(tx, inboxId);
        if (isDone) return;
        const halted = await findHalted(tx, cluster);
        await lockIncidents(
          tx,
          halted.map(({ incident }) => incident),
        );
        const lifted = tx.db.deleteFrom('pause');
        await (cluster === null ? lifted : lifted.where('cluster', '=', cluster)).execute();
        await closeRequest(tx, inboxId);
        tx.book.tell({ kind: 'resumed', actor, data: { cluster } });
        for (const { plan } of halted) await planTheRest(tx, plan, actor);
      }),

    async pausedBy(cluster) {
      const found = await database.ask((db) => findPause(db, cluster));
      return found && { actor: found.actor, at: found.at.toISOString() };
    },
  };
}

/** The pause that holds a cluster: its own, or the one for all. */
export async function findPause(db: Kysely<Tables>, cluster: string) {
  return db
    .selectFrom('pause')
    .select(['actor', 'at'])
    .where('cluster', 'in', [EVERYWHERE, cluster])
    .orderBy('at')
    .executeTakeFirst();
}

async function findHalted(tx: Tx, cluster: string | null) {
  const halted = tx.db
    .selectFrom('plan_state')
    .select(['plan', 'incident'])
    .where('state', '=', 'HALTED')
    .orderBy('plan');
  return (cluster === null ? halted : halted.where('cluster', '=', cluster)).execute();
}

/**
 * A halted plan does not go on: the steps that are left become a new plan that needs its own votes. A plan with a step
 * that may have had its effect stays halted for a person, and so does one whose cluster is still paused.
 */
async function planTheRest(tx: Tx, id: string, actor: string): Promise<void> {
  const stored = await readLocked(tx, id);
  if (stored?.plan.state !== 'HALTED' || (await findPause(tx.db, stored.plan.cluster))) return;
  const { plan } = stored;
  if (plan.steps.some(({ state }) => state === 'INTENT' || state === 'UNKNOWN')) return;
  const rest = plan.steps.filter(({ state }) => state !== 'DONE' && state !== 'NOOP').map(({ write }) => write);
  const isBegun = rest.length < plan.steps.length;
  const successor = rest.length === 0 ? null : partAfter(id);
  if (successor !== null) {
    await createPlan(tx, {
      incident: plan.incident,
      cluster: plan.cluster,
      approvalTtlMs: Date.parse(plan.approveBy) - Date.parse(plan.createdAt),
      continues: isBegun ? id : null,
      plan: {
        id: successor,
        finding: plan.finding,
        fault: plan.fault,
        title: plan.title,
        clusterUid: plan.clusterUid,
        requester: plan.requester,
        offer: restOf(plan, rest),
      },
    });
  }
  await movePlan(tx, plan, {
    to: 'SUPERSEDED',
    says: { en: 'It was halted; what is left needs new votes.', zh: '它已被中止；剩余的步骤需要重新投票。' },
    actor,
    set: { successor },
  });
  await askDiagnosis(tx, [plan.incident]);
}

function restOf(plan: Plan, rest: Plan['writes']): Parameters<typeof createPlan>[1]['plan']['offer'] {
  const { remediation, params, risk, dataLoss, requires, undo } = plan;
  return {
    remediation,
    params,
    risk,
    dataLoss,
    requires,
    undo,
    blocked: null,
    plan: rest,
    digest: digestOf({ cluster: plan.clusterUid, remediation, params, plan: rest }),
  };
}

/** `pln-x` → `pln-x-part2` → `pln-x-part3`. */
function partAfter(id: string): string {
  const found = /^(.*)-part(\d+)$/.exec(id);
  return `${found?.[1] ?? id}-part${Number(found?.[2] ?? 1) + 1}`;
}
