import type { PolicyRule } from './kinds.ts';
import { resourceTable } from './kinds.ts';

/** The three users of the simulated cluster. */
export type Role = 'read' | 'act' | 'admin';

/** Who sends a request. */
export interface ApiUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly rules: readonly PolicyRule[];
}

/** What a request wants to do. */
export interface Attributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

function matches(listed: readonly string[] | undefined, wanted: string): boolean {
  return listed !== undefined && (listed.includes('*') || listed.includes(wanted));
}

/** Whether one of the user's rules allows it, with the semantics of RBAC rules (no deny, sub-resources are named apart). */
export function allows(rules: readonly PolicyRule[], wanted: Attributes): boolean {
  const resource = wanted.subresource === '' ? wanted.resource : `${wanted.resource}/${wanted.subresource}`;
  return rules.some((rule) => {
    if (!matches(rule.verbs, wanted.verb) || !matches(rule.apiGroups, wanted.group)) return false;
    const byName = matches(rule.resources, resource) || (rule.resources ?? []).includes(`*/${wanted.subresource}`);
    if (!byName) return false;
    return (
      rule.resourceNames === undefined || rule.resourceNames.length === 0 || rule.resourceNames.includes(wanted.name)
    );
  });
}

/** Rules that read every kind of the cluster; secrets do not exist here. */
export function readRules(): PolicyRule[] {
  const groups = new Map<string, string[]>();
  for (const entry of resourceTable) {
    const list = groups.get(entry.group) ?? [];
    list.push(entry.resource, ...(entry.subresources.includes('scale') ? [`${entry.resource}/scale`] : []));
    groups.set(entry.group, list);
  }
  return [...groups].map(([group, resources]) => ({ apiGroups: [group], resources, verbs: ['get', 'list', 'watch'] }));
}

/** The least rights of a remediator that knows every act of the facts' table of minimal RBAC, reads included. */
export function defaultActRules(): PolicyRule[] {
  return [
    ...readRules(),
    { apiGroups: [''], resources: ['pods'], verbs: ['delete', 'patch'] },
    { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'patch', 'delete'] },
    { apiGroups: [''], resources: ['persistentvolumes'], verbs: ['create', 'patch', 'delete'] },
    { apiGroups: [''], resources: ['nodes'], verbs: ['patch'] },
    { apiGroups: ['apps'], resources: ['deployments'], verbs: ['patch'] },
    { apiGroups: ['apps'], resources: ['deployments/scale', 'statefulsets/scale'], verbs: ['get', 'patch'] },
    { apiGroups: ['storage.k8s.io'], resources: ['volumeattachments'], verbs: ['delete', 'patch'] },
    { apiGroups: ['storage.k8s.io'], resources: ['storageclasses'], verbs: ['create', 'patch'] },
  ];
}

/** Whoever shows no credentials: may ask for the version and the health, and for nothing else. */
export const anonymous: ApiUser = { name: 'system:anonymous', groups: ['system:unauthenticated'], rules: [] };

const EVERYTHING: readonly PolicyRule[] = [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];

/** The user behind each role; the names are those of the ServiceAccounts that `k8s-storage rbac` prints. */
export function userOf(role: Role, actRules: readonly PolicyRule[]): ApiUser {
  if (role === 'admin')
    return { name: 'kubernetes-admin', groups: ['system:masters', 'system:authenticated'], rules: EVERYTHING };
  return {
    name: `system:serviceaccount:k8s-storage:k8s-storage-${role}`,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:k8s-storage', 'system:authenticated'],
    rules: role === 'read' ? readRules() : actRules,
  };
}
