import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Catalogue, diagnose, needsOf } from '../../src/diagnose.ts';
import type { Report } from '../../src/domain/report.ts';
import type { ResourceName } from '../../src/domain/resources.ts';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { createReader } from '../../src/kube/reader.ts';
import { absoluteTimes, diagnoseObjects, loadCatalogue, NOW, parseScope } from '../support/fixture.ts';
import { startKubeServer } from '../support/kube-server.ts';

const caseFile = z.object({ id: z.string(), target: z.string(), objects: z.array(z.unknown()) });
const folder = fileURLToPath(new URL('../cases/', import.meta.url));
const cases = readdirSync(folder)
  .map((name) => caseFile.parse(parse(readFileSync(`${folder}${name}`, 'utf8'))))
  .filter(({ target }) => target !== 'cluster');
const system = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kube-system', uid: 'cluster-1' } };
/** Kinds that may be left out for want of budget: they add names or offers to what is found without them. */
const mayBeLeftOut: ReadonlySet<ResourceName> = new Set([
  'backendvolumes',
  'daemonsets',
  'horizontalpodautoscalers',
  'jobs',
  'namespaces',
]);

let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = await loadCatalogue();
});

async function readOver(objects: readonly unknown[], scope: ScopeRef) {
  const server = await startKubeServer({ objects });
  const client = new KubeClient(server.config, { retryPauseMs: 1 });
  try {
    const reader = createReader(client, { now: () => NOW, budget: 15 });
    const request = { scope, needs: needsOf(catalogue, scope) };
    const { cluster, cost } = await reader.read(request, new AbortController().signal);
    return { cluster, cost, report: diagnose(cluster, scope, catalogue, cost) };
  } finally {
    await client.close();
    await server.close();
  }
}

function gist({ findings }: Report<unknown>) {
  return findings
    .filter(({ severity }) => severity !== 'info')
    .map(({ fault, verdict, subject, offers }) => ({
      fault,
      verdict,
      subject,
      offers: offers.map(({ remediation }) => remediation),
    }));
}

describe('the target of a case, read over the network with 15 requests', () => {
  it.each(cases)('$id: has the same findings and offers as with all objects at hand', async ({ target, objects }) => {
    const scope = parseScope(target);
    const { cluster, cost, report } = await readOver(
      [system, ...objects.map((object) => absoluteTimes(object))],
      scope,
    );
    expect(cost.requests).toBeLessThanOrEqual(15);
    expect(gist(report)).toEqual(gist(diagnoseObjects(objects, scope, catalogue)));
    const unread = cluster.unread.map(({ resource }) => resource).filter((resource) => !mayBeLeftOut.has(resource));
    expect(unread).toEqual([]);
  });
});
