import type { Selectable } from 'kysely';
import type { AuditRow } from '../domain/audit.ts';
import { refKey } from '../domain/ref.ts';
import { findResourceOfKind, findResourceOfWord, resourceNames, resources } from '../domain/resources.ts';
import type { Store } from '../ports.ts';
import type { Database } from './database.ts';
import type { Tables } from './tables.ts';

type Audit = Pick<Store, 'audit' | 'auditRows' | 'auditOf'>;

const PAGE = 2_000;

export function auditOf(database: Database): Audit {
  return {
    audit: (event) =>
      database.withTx((tx) => {
        tx.book.tell(event);
        return Promise.resolve();
      }),

    async *auditRows() {
      // From the very first row there is, so that a row put before number 1 shows as well.
      let after: string | undefined;
      for (;;) {
        const page = await database.ask((db) => {
          const rows = db.selectFrom('audit').select(['seq', 'prev', 'hash', 'body']).orderBy('seq').limit(PAGE);
          return (after === undefined ? rows : rows.where('seq', '>', after)).execute();
        });
        for (const row of page) yield rowOf(row);
        after = page.at(-1)?.seq;
        if (after === undefined || page.length < PAGE) return;
      }
    },

    async auditOf({ incident, object, limit }) {
      const rows = await database.ask(async (db) => {
        const newest = db
          .selectFrom('audit')
          .select(['seq', 'prev', 'hash', 'body'])
          .orderBy('seq', 'desc')
          .limit(limit);
        if (object === undefined)
          return (incident === undefined ? newest : newest.where('incident', '=', incident)).execute();
        const named = parseObject(object);
        if (!named) return [];
        const plans = db
          .selectFrom('plan_target')
          .select('plan')
          .where('resource', '=', named.resource)
          .where('name', '=', named.name)
          .$if(named.namespace !== undefined, (query) => query.where('namespace', '=', named.namespace ?? null));
        const scopes = db.selectFrom('incident').select('id').where('scope_key', 'like', named.scopePattern);
        const about = newest.where((eb) => eb.or([eb('plan', 'in', plans), eb('incident', 'in', scopes)]));
        return (incident === undefined ? about : about.where('incident', '=', incident)).execute();
      });
      return rows.toReversed().map(rowOf);
    },
  };
}

function rowOf({
  seq,
  prev,
  hash,
  body,
}: Pick<Selectable<Tables['audit']>, 'seq' | 'prev' | 'hash' | 'body'>): AuditRow {
  return { seq: Number(seq), prev, hash, body };
}

/** `KIND/NAME` or `KIND/NAMESPACE/NAME`, the kind in any of its words. */
function parseObject(text: string) {
  const [word = '', ...rest] = text.split('/');
  const resource = findResourceOfWord(word) ?? findResourceOfKind(word) ?? resourceNames.find((name) => name === word);
  const name = rest.at(-1);
  if (resource === undefined || name === undefined || name === '' || rest.length > 2) return undefined;
  const namespace = rest.length === 2 ? rest[0] : undefined;
  const { kind } = resources[resource];
  const scopePattern = refKey({
    kind,
    namespace: namespace === undefined ? '%' : escapeLike(namespace),
    name: escapeLike(name),
  });
  return { resource, name, namespace, scopePattern };
}

function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}
