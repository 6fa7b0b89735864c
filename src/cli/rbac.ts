import type { Command } from 'commander';
import { closest } from 'fastest-levenshtein';
import { stringify } from 'yaml';
import type { Catalogue } from '../diagnose.ts';
import type { Remediation } from '../domain/remediation.ts';
import { type ResourceName, readByName, resourceNames, resources } from '../domain/resources.ts';
import { type CliDeps, Exit } from './deps.ts';

const NAMESPACE = 'k8s-storage';
const READ = 'k8s-storage-read';
const ACT = 'k8s-storage-act';

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** `k8s-storage rbac`: what a cluster's owner applies, no more than the catalogue needs. */
export function addRbacWord(program: Command, deps: CliDeps): void {
  program
    .command('rbac')
    .description('print the service accounts, roles and bindings that the bot needs, as YAML')
    .option('--remediation <id...>', 'allow only these remediations (default: all)')
    .action((options: { readonly remediation?: readonly string[] }) => {
      const { faults, remediations } = deps.catalogue;
      deps.out(rbacYaml({ faults, remediations: pick(remediations, options.remediation) }));
    });
}

function pick(all: readonly Remediation[], ids: readonly string[] | undefined): readonly Remediation[] {
  if (!ids) return all;
  return ids.map((id) => {
    const found = all.find((remediation) => remediation.id === id);
    if (found) return found;
    const known = all.map((remediation) => remediation.id);
    throw new Exit(
      2,
      `there is no remediation ${JSON.stringify(id)}; did you mean ${closest(id, known)}? There are ${known.join(', ')}.`,
    );
  });
}

/**
 * Reading: `list` of every kind that a fault judges by, `get` of those that are asked for by name. Acting: the writes of the remediations and the reads
 * that check them. Never a wildcard, never `deletecollection`, no secrets, no configmaps, no impersonation.
 */
export function rbacYaml(catalogue: Catalogue): string {
  const read = rulesOf(readsOf(catalogue.faults.flatMap((fault) => [...fault.needs, ...fault.uses])));
  const act = rulesOf(accessOf(catalogue.remediations));
  const documents = [
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
    account(READ),
    account(ACT),
    role(READ, read),
    role(ACT, act),
    binding(READ),
    binding(ACT),
  ];
  return documents.map((document) => stringify(document, { lineWidth: 0 })).join('---\n');
}

/** Verbs by resource, subresources as `deployments/scale`. */
type Access = ReadonlyMap<string, { readonly resource: ResourceName; readonly verbs: ReadonlySet<string> }>;

/** The kube-system namespace is always read: its uid is the cluster's identity. */
function readsOf(kinds: readonly ResourceName[]): Access {
  const wanted = new Set<ResourceName>([...kinds, 'namespaces']);
  const names = resourceNames.filter((name) => name !== 'backendvolumes' && wanted.has(name));
  const isByName = (name: ResourceName) => readByName.some((one) => one === name);
  return new Map(
    names.map((resource) => [resource, { resource, verbs: new Set(isByName(resource) ? ['get', 'list'] : ['list']) }]),
  );
}

function accessOf(remediations: readonly Remediation[]): Access {
  const access = new Map<string, { resource: ResourceName; verbs: Set<string> }>();
  const allow = (key: string, resource: ResourceName, verbs: Iterable<string>) => {
    const known = access.get(key) ?? { resource, verbs: new Set<string>() };
    for (const verb of verbs) known.verbs.add(verb);
    access.set(key, known);
  };
  const reads = remediations.flatMap((remediation) => [
    ...remediation.needs,
    ...remediation.touches.map((touch) => touch.resource),
  ]);
  for (const [key, { resource, verbs }] of readsOf(reads)) allow(key, resource, verbs);
  for (const { verb, resource, subresource } of remediations.flatMap((remediation) => remediation.touches)) {
    // The storage backend has its own credentials; the cluster's roles have nothing to do with it.
    if (resource === 'backendvolumes') continue;
    // The object itself is looked at before and after; patching its scale alone is the smaller right.
    allow(resource, resource, ['get']);
    allow(subresource === undefined ? resource : `${resource}/${subresource}`, resource, [verb]);
  }
  return access;
}

/** One rule per API group and set of verbs, in a fixed order, so that a change of the catalogue is a small diff. */
function rulesOf(access: Access): readonly Rule[] {
  const order = ['get', 'list', 'create', 'patch', 'delete'];
  const groups = Map.groupBy(
    access,
    ([, { resource, verbs }]) => `${resources[resource].group}\n${order.filter((verb) => verbs.has(verb)).join(' ')}`,
  );
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, entries]) => {
      const [group = '', verbs = ''] = key.split('\n');
      return { apiGroups: [group], resources: entries.map(([name]) => name).toSorted(), verbs: verbs.split(' ') };
    });
}

function account(name: string) {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: NAMESPACE } };
}

function role(name: string, rules: readonly Rule[]) {
  return { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name }, rules };
}

function binding(name: string) {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace: NAMESPACE }],
  };
}
