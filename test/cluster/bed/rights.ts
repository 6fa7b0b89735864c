import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { rbacYaml } from '../../../src/cli/rbac.ts';
import { faults } from '../../../src/faults/index.ts';
import { remediations } from '../../../src/remediations/index.ts';
import { Api } from './api.ts';
import type { AuditLine } from './audit.ts';
import type { Bed } from './bed.ts';
import { ACTOR, READER } from './credentials.ts';
import { at } from './objects.ts';

export type Account = 'read' | 'act';

/** One verb on one resource, subresources as `deployments/scale`. */
export interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
}

const role = z.object({
  kind: z.literal('ClusterRole'),
  metadata: z.object({ name: z.string() }),
  rules: z.array(
    z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
  ),
});

/** Every right of an account as `k8s-storage rbac` prints them. */
export function rightsOf(account: Account): readonly Right[] {
  const documents = parseAllDocuments(rbacYaml({ faults, remediations }));
  const roles = documents.flatMap((document) => role.safeParse(document.toJS()).data ?? []);
  const found = roles.find(({ metadata }) => metadata.name === `k8s-storage-${account}`);
  return (found?.rules ?? []).flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => ({ verb, group, resource })))),
  );
}

export const describeRight = ({ verb, group, resource }: Right): string =>
  `${verb} ${[resource, group].filter(Boolean).join('.')}`;

/** What a request of the bot's has used of the rights of which account; what was forbidden has used nothing. */
export function rightUsed({ user, verb, objectRef, responseStatus, requestURI }: AuditLine): string | undefined {
  const account = user.username === READER ? 'read' : user.username === ACTOR ? 'act' : undefined;
  if (account === undefined || objectRef === undefined || responseStatus?.code === 403) return undefined;
  const group = /^\/apis\/([^/]+)\//.exec(requestURI)?.[1] ?? '';
  const resource = [objectRef.resource, objectRef.subresource].filter(Boolean).join('/');
  return `${account} ${describeRight({ verb, group, resource })}`;
}

/** Takes rights from an account until the returned function gives them back; both wait until the server acts by it. */
export async function withhold(
  bed: Bed,
  account: Account,
  isTaken: (right: Right) => boolean,
): Promise<() => Promise<void>> {
  const all = rightsOf(account);
  const taken = all.filter(isTaken);
  if (taken.length === 0) throw new Error(`the account ${account} never had that right`);
  const own = new Api(bed.api.server, bed.credentials.token(account), bed.caFile);
  const grant = async (rights: readonly Right[], allowed: boolean) => {
    const rules = rights.map(({ verb, group, resource }) => ({
      apiGroups: [group],
      resources: [resource],
      verbs: [verb],
    }));
    await bed.api.patch(`ClusterRole k8s-storage-${account}`, { rules });
    await bed.until(`the rights of ${account} to be ${allowed ? 'whole' : 'less'}`, async () => {
      const answers = await Promise.all(taken.map((right) => mayDo(own, right)));
      return answers.every((answer) => answer === allowed) || undefined;
    });
  };
  await grant(
    all.filter((right) => !isTaken(right)),
    false,
  );
  return async () => {
    await grant(all, true);
    await own.close();
  };
}

async function mayDo(api: Api, { verb, group, resource }: Right): Promise<boolean> {
  const [name, subresource] = resource.split('/');
  const answer = await api.call('POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
    spec: { resourceAttributes: { verb, group, resource: name, subresource } },
  });
  return at(answer, 'status.allowed') === true;
}

export const accounts = ['read', 'act'] as const satisfies readonly Account[];

/** Rights that are granted although no scenario uses them, each with its reason. */
const reasons: readonly { readonly rights: RegExp; readonly because: string }[] = [
  {
    rights: /^act (get|patch) statefulsets(\/scale)?\.apps$/,
    because: 'the scenarios restart and scale the other kind of workload that the same remediation takes',
  },
  {
    rights: /^act (get|patch) volumesnapshotcontents\./,
    because: 'finalizers of snapshot contents are removed as those of snapshots are, which a scenario does',
  },
];

/** Why a right is granted that was not seen in use; undefined where there is no reason. */
export function grantedFor(right: string): string | undefined {
  return reasons.find(({ rights }) => rights.test(right))?.because;
}
