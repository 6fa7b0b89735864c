import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { apiVersionOf, readByName, resources } from '../../src/domain/resources.ts';
import { catalogue, runCli } from '../support/cli.ts';

const document = z.object({
  kind: z.string(),
  metadata: z.object({ name: z.string(), namespace: z.string().optional() }),
  rules: z
    .array(z.object({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }))
    .optional(),
  roleRef: z.object({ name: z.string() }).optional(),
  subjects: z.array(z.object({ name: z.string(), namespace: z.string() })).optional(),
});

async function rbac(...args: readonly string[]) {
  const { out, code, err } = await runCli(['rbac', ...args]);
  const documents = parseAllDocuments(out).map((one) => document.parse(one.toJS()));
  const rulesOf = (name: string) =>
    documents.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === name)?.rules ?? [];
  const may = (name: string, verb: string, resource: string, group = '') =>
    rulesOf(name).some(
      (rule) => rule.verbs.includes(verb) && rule.resources.includes(resource) && rule.apiGroups.includes(group),
    );
  return { code, err, documents, rulesOf, may };
}

describe('rbac', () => {
  it('prints both accounts, roles and bindings in the namespace of the bot', async () => {
    const { documents } = await rbac();
    expect(documents.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`)).toEqual([
      'Namespace /k8s-storage',
      'ServiceAccount k8s-storage/k8s-storage-read',
      'ServiceAccount k8s-storage/k8s-storage-act',
      'ClusterRole /k8s-storage-read',
      'ClusterRole /k8s-storage-act',
      'ClusterRoleBinding /k8s-storage-read',
      'ClusterRoleBinding /k8s-storage-act',
    ]);
    for (const { kind, metadata, roleRef, subjects } of documents) {
      if (kind === 'ClusterRoleBinding')
        expect([roleRef?.name, subjects]).toEqual([metadata.name, [{ name: metadata.name, namespace: 'k8s-storage' }]]);
    }
  });

  it('reading covers every kind that a fault asks for, and only reads', async () => {
    const { may, rulesOf } = await rbac();
    const asked = catalogue.faults
      .flatMap((fault) => [...fault.needs, ...fault.uses])
      .filter((name) => name !== 'backendvolumes');
    for (const name of asked) {
      expect(may('k8s-storage-read', 'list', name, resources[name].group)).toBe(true);
    }
    expect(new Set(rulesOf('k8s-storage-read').flatMap(({ verbs }) => verbs))).toEqual(new Set(['get', 'list']));
    const byName = rulesOf('k8s-storage-read').filter(({ verbs }) => verbs.includes('get'));
    expect(byName.flatMap((rule) => rule.resources)).toEqual([...readByName]);
  });

  it('acting covers every touch of the remediations and the reads that check it', async () => {
    const { may } = await rbac();
    for (const { touches, needs } of catalogue.remediations) {
      for (const { verb, resource, subresource } of touches) {
        // What is changed in the storage backend needs no right in the cluster, and gets none.
        if (resource === 'backendvolumes') continue;
        expect(
          may(
            'k8s-storage-act',
            verb,
            subresource ? `${resource}/${subresource}` : resource,
            resources[resource].group,
          ),
        ).toBe(true);
        expect(may('k8s-storage-act', 'get', resource, resources[resource].group)).toBe(true);
      }
      for (const name of needs)
        if (name !== 'backendvolumes') expect(may('k8s-storage-act', 'list', name, resources[name].group)).toBe(true);
    }
  });

  it('nothing is a wildcard, and what the bot never does is not allowed', async () => {
    const { documents } = await rbac();
    const rules = documents.flatMap((one) => one.rules ?? []);
    const words = rules.flatMap((rule) => [...rule.apiGroups, ...rule.resources, ...rule.verbs]);
    for (const word of [
      '*',
      'deletecollection',
      'secrets',
      'configmaps',
      'impersonate',
      'escalate',
      'bind',
      'update',
      'watch',
    ])
      expect(words).not.toContain(word);
    expect(words).not.toContain('backendvolumes');
    const deletes = rules.filter(({ verbs }) => verbs.includes('delete')).flatMap((rule) => rule.resources);
    for (const kind of ['namespaces', 'nodes', 'persistentvolumes']) expect(deletes).not.toContain(kind);
    expect(apiVersionOf('pods')).toBe('v1');
  });

  it('one remediation needs no more than its own', async () => {
    const { rulesOf } = await rbac('--remediation', 'set-reclaim-policy-retain');
    const writes = rulesOf('k8s-storage-act').filter(({ verbs }) =>
      verbs.some((verb) => verb !== 'get' && verb !== 'list'),
    );
    expect(writes).toEqual([{ apiGroups: [''], resources: ['persistentvolumes'], verbs: ['get', 'list', 'patch'] }]);
  });

  it('an unknown remediation ends with 2 and names the nearest', async () => {
    const { code, err } = await rbac('--remediation', 'delete-pods');
    expect(code).toBe(2);
    expect(err).toMatch(/there is no remediation "delete-pods"; did you mean delete-pod\?/);
  });
});
