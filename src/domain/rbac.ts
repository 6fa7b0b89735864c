/** What the API server refused to whom, and which role would have to allow it. */
import type { Cluster } from './cluster.ts';
import { type Complaint, complaintsOf } from './complaint.ts';
import type { RoleBindingObject, RoleObject } from './objects.ts';
import { missingRef, type Ref } from './ref.ts';
import type { Scope } from './scope.ts';

/** One refusal as the API server words it. */
export interface Denial {
  /** `system:serviceaccount:kube-system:hcloud-csi`; undefined when the text does not say who asked. */
  readonly user: string | undefined;
  readonly verb: string;
  /** Plural, with its subresource: `csinodes`, `statefulsets/finalizers`. */
  readonly resource: string;
  readonly group: string;
  /** Null at the cluster scope. */
  readonly namespace: string | null;
  /** Name of the object that was asked for or could not be made; empty for a list. */
  readonly object: string;
}

/** `RBAC` authorizer and node authorizer answer alike (apiserver `pkg/endpoints/handlers/responsewriters/errors.go`). */
const REFUSED =
  /(\S+?)(?: "([^"]*)")? is forbidden: User "([^"]*)" cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: at the cluster scope| in the namespace "([^"]+)")?/;
/** Admission `OwnerReferencesPermissionEnforcement`: who sets `blockOwnerDeletion` must be allowed to update the owner's finalizers. */
const BLOCKED = /(\S+?) "([^"]*)" is forbidden: cannot set blockOwnerDeletion .*can't set finalizers on/s;

/**
 * Reads a refusal out of an error text; undefined for anything else: a backend's own 401 or 403, a quota, and kubelet's
 * `no relationship found`, which only says that an object does not exist.
 */
export function denialIn(complaint: Pick<Complaint, 'message' | 'object' | 'component'>): Denial | undefined {
  const refused = REFUSED.exec(complaint.message);
  if (refused) {
    const [, , object = '', user = '', verb = '', resource = '', group = '', namespace = null] = refused;
    return user.startsWith('system:node:') ? undefined : { user, verb, resource, group, namespace, object };
  }
  const blocked = BLOCKED.exec(complaint.message);
  if (!blocked) return undefined;
  const { resource, ref } = complaint.object;
  const [, , object = ''] = blocked;
  return {
    user: controllerAccount(complaint.component),
    verb: 'update',
    resource: `${resource}/finalizers`,
    group: groupOf(ref),
    namespace: ref.namespace,
    object,
  };
}

/** Kubernetes' own controllers use accounts of their name (`--use-service-account-credentials`). */
function controllerAccount(component: string): string | undefined {
  const name = component.replaceAll('_', '-');
  if (name === '') return undefined;
  return `system:serviceaccount:kube-system:${name.endsWith('-controller') ? name : `${name}-controller`}`;
}

function groupOf(ref: Ref): string {
  return ref.apiVersion.includes('/') ? ref.apiVersion.slice(0, ref.apiVersion.indexOf('/')) : '';
}

export interface Refused {
  readonly complaint: Complaint;
  readonly denial: Denial;
}

/** Every refusal that keeps something of a scope waiting, apart from those that the roles allow by now. */
export function refusalsOf(cluster: Cluster, scope: Scope): readonly Refused[] {
  return complaintsOf(cluster, scope).flatMap((complaint) => {
    const denial = denialIn(complaint);
    return denial && isAboutStorage(denial, complaint) && !isAllowedNow(denial, cluster) ? [{ complaint, denial }] : [];
  });
}

/** A workload's controller is refused much; only what makes its claims is storage. */
function isAboutStorage({ resource }: Denial, { object, message }: Complaint): boolean {
  if (object.resource !== 'statefulsets' && object.resource !== 'pods') return true;
  return (
    /^(persistentvolume|volumeattachment|csi|storageclass|volumesnapshot|nodes$)/.test(resource) ||
    /persistentvolumeclaims?\b/i.test(message)
  );
}

/** Whether every binding that could grant it was read; a namespace's own ones count only for what lives in it. */
export function areRightsRead({ namespace }: Pick<Denial, 'namespace'>, cluster: Cluster): boolean {
  const kinds = ['clusterroles', 'clusterrolebindings'] as const;
  const near = namespace === null ? [] : (['roles', 'rolebindings'] as const);
  return [...kinds, ...near].every((kind) => cluster.isRead(kind));
}

/** A role that is bound to an account; `role` is undefined when the binding names one that does not exist. */
export interface BoundRole {
  readonly ref: Ref;
  readonly role: RoleObject | undefined;
}

/** The roles that count for a refusal: cluster-wide bindings, and those of the namespace that was asked about. */
export function rolesFor({ user, namespace }: Denial, cluster: Cluster): readonly BoundRole[] {
  if (user === undefined) return [];
  const { clusterrolebindings, rolebindings } = cluster.objects;
  const near = rolebindings.filter((binding) => binding.namespace === namespace);
  return (
    [...clusterrolebindings, ...near]
      .filter((binding) => binding.subjects.some((subject) => isSubject(subject, binding, user)))
      // Of a role that could not be read nothing is known, not even whether it exists.
      .filter(({ role }) => cluster.isRead(role.kind === 'ClusterRole' ? 'clusterroles' : 'roles'))
      .map(({ role, namespace: home }) => {
        const { clusterroles, roles } = cluster.objects;
        const isClusterRole = role.kind === 'ClusterRole';
        const found = isClusterRole
          ? clusterroles.find(({ name }) => name === role.name)
          : roles.find((item) => item.name === role.name && item.namespace === home);
        return {
          ref: found?.ref ?? missingRef(isClusterRole ? 'ClusterRole' : 'Role', isClusterRole ? null : home, role.name),
          role: found,
        };
      })
  );
}

function isSubject(subject: RoleBindingObject['subjects'][number], binding: RoleBindingObject, user: string): boolean {
  if (subject.kind === 'ServiceAccount')
    return user === `system:serviceaccount:${subject.namespace ?? binding.namespace ?? ''}:${subject.name}`;
  if (subject.kind === 'User') return user === subject.name;
  return subject.kind === 'Group' && groupsOfUser(user).includes(subject.name);
}

function groupsOfUser(user: string): readonly string[] {
  const namespace = /^system:serviceaccount:([^:]+):/.exec(user)?.[1];
  return namespace === undefined
    ? ['system:authenticated']
    : ['system:authenticated', 'system:serviceaccounts', `system:serviceaccounts:${namespace}`];
}

/** Whether the roles that can be read grant it by now: then the refusal is past. */
function isAllowedNow(denial: Denial, cluster: Cluster): boolean {
  return (
    areRightsRead(denial, cluster) &&
    rolesFor(denial, cluster).some(({ role }) => role !== undefined && grants(role, denial))
  );
}

/** RBAC's own comparison (`pkg/apis/rbac/v1/evaluation_helpers.go`), without names of single objects. */
export function grants({ rules }: RoleObject, { group, resource, verb }: Denial): boolean {
  const [, subresource] = resource.split('/');
  return rules.some(
    (rule) =>
      matches(rule.apiGroups, group) &&
      matches(rule.verbs, verb) &&
      (matches(rule.resources, resource) || (subresource !== undefined && rule.resources.includes(`*/${subresource}`))),
  );
}

function matches(listed: readonly string[], wanted: string): boolean {
  return listed.includes('*') || listed.includes(wanted);
}

/** The bound role that speaks of most of what was refused: that is the one whose manifest is out of date. */
export function roleToWiden(denials: readonly Denial[], cluster: Cluster): BoundRole | undefined {
  const [first] = denials;
  if (!first) return undefined;
  const score = ({ role, ref }: BoundRole) => {
    if (!role) return 1;
    const nearness = denials.map(
      ({ group, resource }) =>
        (role.rules.some((rule) => rule.resources.includes(resource.split('/')[0] ?? '')) ? 8 : 0) +
        (role.rules.some((rule) => matches(rule.apiGroups, group)) ? 4 : 0),
    );
    return Math.max(...nearness) + (first.namespace === null && ref.kind === 'ClusterRole' ? 2 : 0);
  };
  // What every account may do is nobody's manifest.
  const own = rolesFor(first, cluster).filter(
    ({ ref }) => !/^system:(basic-user|discovery|public-info)/.test(ref.name),
  );
  return own.toSorted((a, b) => score(b) - score(a))[0];
}
