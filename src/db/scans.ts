import { sql } from 'kysely';
import { type Cause, causeKey } from '../domain/incident.ts';
import { describeRef } from '../domain/ref.ts';
import { describeScope, type ScopeRef, scopeKey } from '../domain/scope.ts';
import type { Store } from '../ports.ts';
import type { Database, Tx } from './database.ts';
import { bringBackForCause, insertIncident, lockCauses, lookAgain } from './incident-moves.ts';
import { now } from './moves.ts';
import { noteRush } from './noise.ts';
import { cleanText } from './text.ts';

type Scans = Pick<Store, 'planScans' | 'beginScan' | 'recordScan'>;

/** When each cluster is looked at by the bot itself, and what came of it. */
export function scansOf(database: Database): Scans {
  return {
    planScans: (clusters, everyMs, newId) =>
      database.withTx(async (tx) => {
        const looked = everyMs === 0 ? [] : clusters;
        // A list of nothing is no SQL; no cluster is called ''.
        await tx.db
          .deleteFrom('scan')
          .where('cluster', 'not in', ['', ...looked])
          .execute();
        for (const cluster of looked) {
          await tx.db
            .insertInto('scan')
            .values({ cluster, id: newId(), every_ms: everyMs })
            .onConflict((conflict) => conflict.column('cluster').doUpdateSet({ every_ms: everyMs }))
            .execute();
        }
      }),

    beginScan: (id) =>
      database.withTx(async (tx) => {
        const scan = await tx.db
          .updateTable('scan')
          .set({ due_at: sql`clock_timestamp() + every_ms * interval '1 millisecond'`, done_at: now(), woken_at: null })
          .where('id', '=', id)
          .where('due_at', '<=', now())
          .returning('cluster')
          .executeTakeFirst();
        return scan?.cluster;
      }),

    recordScan: ({ cluster, channel, seen, all, newId }) =>
      database.withTx(async (tx) => {
        await lockCauses(
          tx,
          cluster,
          seen.map(({ cause }) => cause),
        );
        const asking: string[] = [];
        let isCrowded = false;
        for (const { cause, scope } of seen) {
          const known = await bringBackForCause(tx, cluster, cause);
          if (known !== undefined) {
            if (known.how === 'reopened') {
              asking.push(known.id);
              tx.book.tell({
                kind: 'incident_reopened',
                actor: 'system',
                incident: known.id,
                data: { sees: cause.fault },
              });
            }
            continue;
          }
          const opened = await open(tx, { cluster, channel, cause, scope, id: newId('inc') });
          if (opened === undefined) continue;
          isCrowded = true;
          asking.push(opened);
        }
        if (isCrowded) await noteRush(tx, channel, () => newId('lst'));
        asking.push(...(await askUnseen(tx, cluster, all)));
        return asking;
      }),
  };
}

async function open(
  tx: Tx,
  input: {
    readonly cluster: string;
    readonly channel: string;
    readonly cause: Cause;
    readonly scope: ScopeRef;
    readonly id: string;
  },
): Promise<string | undefined> {
  const { cluster, channel, cause, scope, id } = input;
  const key = cleanText(scopeKey(scope));
  // One that is open for the same object is being diagnosed, or was just now: it finds the cause by itself.
  const made = await insertIncident(tx, { id, cluster, scope, key, channel, origin: 'scan' });
  if (!made) return undefined;
  tx.book.tell({
    kind: 'incident_opened',
    actor: 'system',
    incident: id,
    data: { cluster, scope: describeScope(scope), sees: cause.fault, at: describeRef(cause.subject) },
  });
  return id;
}

/** Incidents that nobody asked for and none of whose causes is there any more: they may be over. */
async function askUnseen(tx: Tx, cluster: string, all: readonly Cause[]): Promise<readonly string[]> {
  const keys = all.map((cause) => cleanText(causeKey(cause)));
  const { rows } = await sql<{ id: string }>`
    select id from incident where cluster = ${cluster} and origin <> 'person' and state = 'diagnosed'
      and exists (select from incident_cause where incident_cause.incident = incident.id)
      and not exists (select from incident_cause where incident_cause.incident = incident.id and cause = any(${keys}))
    order by id for update`.execute(tx.db);
  for (const { id } of rows) await lookAgain(tx, id, 0);
  return rows.map(({ id }) => id);
}
