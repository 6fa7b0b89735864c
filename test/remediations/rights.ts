import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { rbacYaml } from '../../src/cli/rbac.ts';
import type { Remediation } from '../../src/domain/remediation.ts';
import { resources } from '../../src/domain/resources.ts';
import type { Write } from '../../src/domain/write.ts';
import { remediations } from '../../src/remediations/index.ts';
import { aim, attempt, paramsOf, world } from './worlds.ts';

const role = z.object({
  kind: z.literal('ClusterRole'),
  metadata: z.object({ name: z.literal('k8s-storage-act') }),
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});

/** `verb group/resource[/subresource]` of everything that the acting role of this one remediation grants. */
function rightsOf(remediation: Remediation): ReadonlySet<string> {
  const documents = parseAllDocuments(rbacYaml({ faults: [], remediations: [remediation] }));
  const found = documents.flatMap((one) => role.safeParse(one.toJS()).data ?? []);
  return new Set(
    found.flatMap(({ rules }) =>
      rules.flatMap((rule) =>
        rule.apiGroups.flatMap((group) =>
          rule.resources.flatMap((resource) => rule.verbs.map((verb) => `${verb} ${group}/${resource}`)),
        ),
      ),
    ),
  );
}

function rightFor(write: Write): string {
  const subresource = write.verb === 'patch' && write.subresource ? `/${write.subresource}` : '';
  return `${write.verb} ${resources[write.resource].group}/${write.resource}${subresource}`;
}

/** What was planned over so many generated parameters, by remediation, and every write that lacked its right. */
export interface RightsReport {
  readonly parameters: number;
  readonly plans: ReadonlyMap<string, number>;
  readonly lacking: ReadonlySet<string>;
}

/**
 * Plans every remediation in generated worlds, parameters aimed at what is there more often than not, and compares each
 * write with the role that `rbac --remediation ID` prints and with what the remediation declares. A plan that is refused
 * writes nothing; how many were made is counted, so that a promise about nothing is seen.
 */
export function checkRights(parameters: number, seed: number): RightsReport {
  const all = remediations.map((remediation) => ({
    remediation,
    rights: rightsOf(remediation),
    touches: new Set(
      remediation.touches.map(({ verb, resource, subresource }) =>
        [verb, resource, ...(subresource === undefined ? [] : [subresource])].join(' '),
      ),
    ),
    params: paramsOf[remediation.id] ?? fc.constant({}),
  }));
  const plans = new Map<string, number>();
  const lacking = new Set<string>();
  const numRuns = Math.ceil(parameters / all.length);
  fc.assert(
    fc.property(
      world,
      fc.tuple(...all.map(({ params }) => params)),
      fc.option(fc.nat(20), { freq: 4 }),
      (cluster, given, at) => {
        for (const [i, { remediation, rights, touches }] of all.entries()) {
          const wild = given[i] ?? {};
          const aimed = at === null ? wild : aim(remediation.id, wild, cluster, at);
          const { writes } = attempt(remediation, aimed, cluster);
          if (writes.length > 0) plans.set(remediation.id, (plans.get(remediation.id) ?? 0) + 1);
          for (const write of writes) {
            const touch = [write.verb, write.resource, ...(write.verb === 'patch' && write.subresource ? [write.subresource] : [])];
            const right = rightFor(write);
            // The storage backend has rights of its own: there the declaration alone counts.
            const isGranted = write.resource === 'backendvolumes' || rights.has(right);
            if (!isGranted || !touches.has(touch.join(' '))) lacking.add(`${remediation.id}: ${right}`);
          }
        }
      },
    ),
    { numRuns, seed },
  );
  return { parameters: numRuns * all.length, plans, lacking };
}
