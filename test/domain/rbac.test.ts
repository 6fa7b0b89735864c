import { describe, expect, it } from 'vitest';
import { type Denial, denialIn, grants, rolesFor, roleToWiden } from '../../src/domain/rbac.ts';
import { missingRef } from '../../src/domain/ref.ts';
import type { ResourceName } from '../../src/domain/resources.ts';
import { toCluster } from '../support/fixture.ts';

const [claim] = toCluster([
  { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data', namespace: 'shop', uid: 'u' } },
]).objects.persistentvolumeclaims;
const [set] = toCluster([
  { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'db', namespace: 'shop', uid: 'u' } },
]).objects.statefulsets;
if (!claim || !set) throw new Error('no objects');
const read = (message: string) => denialIn({ message, object: claim, component: '' });

describe('a refusal of the API server', () => {
  it.each<[string, Partial<Denial>]>([
    [
      'error getting CSINode: csinodes.storage.k8s.io "kube-02" is forbidden: User "system:serviceaccount:kube-system:hcloud-csi" cannot get resource "csinodes" in API group "storage.k8s.io" at the cluster scope',
      {
        user: 'system:serviceaccount:kube-system:hcloud-csi',
        verb: 'get',
        resource: 'csinodes',
        group: 'storage.k8s.io',
        namespace: null,
        object: 'kube-02',
      },
    ],
    [
      'persistentvolumeclaims is forbidden: User "ann" cannot create resource "persistentvolumeclaims" in API group "" in the namespace "shop"',
      { user: 'ann', verb: 'create', resource: 'persistentvolumeclaims', group: '', namespace: 'shop', object: '' },
    ],
    [
      'volumeattachments.storage.k8s.io "csi-1" is forbidden: User "a" cannot patch resource "volumeattachments/status" in API group "storage.k8s.io" at the cluster scope',
      { resource: 'volumeattachments/status', verb: 'patch' },
    ],
  ])('is read out of: %s', (message, expected) => {
    expect(read(message)).toMatchObject(expected);
  });

  it.each([
    'rpc error: code = PermissionDenied desc = 403 Forbidden: not authorized to perform ec2:CreateVolume',
    'persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: storage, requested: x, used: y, limited: z',
    'pods "p" is forbidden: violates PodSecurity "restricted:latest"',
    `volumeattachments.storage.k8s.io "v" is forbidden: User "system:node:n1" cannot get resource "volumeattachments" in API group "storage.k8s.io" at the cluster scope: no relationship found between node 'n1' and this object`,
    '',
  ])('is not: %s', (message) => {
    expect(read(message)).toBeUndefined();
  });

  it.each([
    ['statefulset-controller', 'system:serviceaccount:kube-system:statefulset-controller'],
    ['ephemeral_volume', 'system:serviceaccount:kube-system:ephemeral-volume-controller'],
    ['', undefined],
  ])('of admission means the finalizers of the owner, and the account of %s', (component, user) => {
    const message = `create Claim data-db-0 failed: persistentvolumeclaims "data-db-0" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`;
    expect(denialIn({ message, object: set, component })).toEqual({
      user,
      verb: 'update',
      resource: 'statefulsets/finalizers',
      group: 'apps',
      namespace: 'shop',
      object: 'data-db-0',
    });
  });
});

const denial: Denial = {
  user: 'system:serviceaccount:csi:disk',
  verb: 'patch',
  resource: 'volumeattachments/status',
  group: 'storage.k8s.io',
  namespace: null,
  object: 'v',
};
const rule = (apiGroups: readonly string[], resources: readonly string[], verbs: readonly string[]) => ({
  apiGroups,
  resources,
  verbs,
});
const rbac = (kind: string, name: string, namespace: string | undefined, more: object) => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind,
  metadata: { name, uid: `uid-${name}`, ...(namespace === undefined ? {} : { namespace }) },
  ...more,
});
const bound = (role: string, subject: object, namespace?: string, kind = 'ClusterRole') =>
  rbac(namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding', `b-${role}`, namespace, {
    roleRef: { kind, name: role },
    subjects: [subject],
  });
const account = { kind: 'ServiceAccount', name: 'disk', namespace: 'csi' };

it.each([
  [rule(['storage.k8s.io'], ['volumeattachments/status'], ['patch']), true],
  [rule(['*'], ['*'], ['*']), true],
  [rule(['storage.k8s.io'], ['*/status'], ['patch']), true],
  [rule(['storage.k8s.io'], ['volumeattachments'], ['patch']), false],
  [rule(['storage.k8s.io'], ['volumeattachments/status'], ['get', 'update']), false],
  [rule([''], ['volumeattachments/status'], ['patch']), false],
])('a role with %j grants it: %s', (one, isGranted) => {
  const [role] = toCluster([rbac('ClusterRole', 'r', undefined, { rules: [one] })]).objects.clusterroles;
  expect(role && grants(role, denial)).toBe(isGranted);
});

describe('the roles of an account', () => {
  const names = (objects: readonly unknown[], of: Denial = denial, notRead: readonly ResourceName[] = []) =>
    rolesFor(of, toCluster(objects, { notRead })).map(({ ref }) => ref.name);

  it.each([
    ['its own binding', account, true],
    ['a group of its namespace', { kind: 'Group', name: 'system:serviceaccounts:csi' }, true],
    ['everybody', { kind: 'Group', name: 'system:authenticated' }, true],
    ['a user of that name', { kind: 'User', name: denial.user }, true],
    ['an account of that name elsewhere', { ...account, namespace: 'other' }, false],
    ['a group of another namespace', { kind: 'Group', name: 'system:serviceaccounts:other' }, false],
  ])('come by %s: %#', (_, subject, isBound) => {
    expect(names([rbac('ClusterRole', 'r', undefined, {}), bound('r', subject)])).toEqual(isBound ? ['r'] : []);
  });

  it('of a namespace count there alone', () => {
    const objects = [rbac('Role', 'r', 'shop', {}), bound('r', account, 'shop', 'Role')];
    expect(names(objects)).toEqual([]);
    expect(names(objects, { ...denial, namespace: 'shop' })).toEqual(['r']);
  });

  it('that do not exist are named all the same, but not when roles were not read', () => {
    const objects = [bound('gone', account)];
    expect(rolesFor(denial, toCluster(objects))).toEqual([
      { ref: missingRef('ClusterRole', null, 'gone'), role: undefined },
    ]);
    expect(names(objects, denial, ['clusterroles'])).toEqual([]);
  });

  it('to be widened is the one that speaks of the same things, and never one that everybody has', () => {
    const everybody = { kind: 'Group', name: 'system:authenticated' };
    const objects = [
      rbac('ClusterRole', 'system:discovery', undefined, { rules: [rule(['storage.k8s.io'], ['x'], ['get'])] }),
      bound('system:discovery', everybody),
      rbac('ClusterRole', 'leases', undefined, { rules: [rule(['coordination.k8s.io'], ['leases'], ['get'])] }),
      bound('leases', account),
      rbac('ClusterRole', 'attacher', undefined, { rules: [rule(['storage.k8s.io'], ['volumeattachments'], ['get'])] }),
      bound('attacher', account),
    ];
    expect(roleToWiden([denial], toCluster(objects))?.ref.name).toBe('attacher');
    expect(roleToWiden([], toCluster(objects))).toBeUndefined();
    expect(roleToWiden([denial], toCluster([]))).toBeUndefined();
  });
});
