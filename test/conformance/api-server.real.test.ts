import { readFileSync } from 'node:fs';
import { request } from 'undici';
import { afterAll, beforeAll, describe, inject, it } from 'vitest';
import { z } from 'zod';
import { type Bed, startBed } from '../cluster/bed/bed.ts';
import { LIMITED, limitedRules } from './api-server.runner.ts';
import { apiServerSuite } from './api-server.suite.ts';

const { programs, controlPlane } = inject('testbed');
/** Kubernetes keeps recent states in a cache of its own; without it what etcd forgot is forgotten at once. */
const UNCACHED = '--watch-cache-sizes=leases.coordination.k8s.io#0';

describe.skipIf(programs === null)('a real one', () => {
  let bed: Bed;
  beforeAll(async () => {
    if (programs === null) return;
    bed = await startBed('conformance', programs, {
      isApiOnly: true,
      flags: { apiserver: [UNCACHED] },
      ...(controlPlane === null ? {} : { controlPlane }),
    });
    const rbac = 'rbac.authorization.k8s.io';
    await bed.apply(
      {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRole',
        metadata: { name: 'limited' },
        rules: limitedRules,
      },
      {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'limited' },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'limited' },
        subjects: [{ kind: 'User', apiGroup: rbac, name: LIMITED }],
      },
    );
  });
  afterAll(() => bed?.close());

  apiServerSuite({ describe, it, beforeAll, afterAll }, async () => {
    const ca = readFileSync(bed.caFile, 'utf8');
    const connect = (who: string) => ({ baseUrl: bed.api.server, token: bed.credentials.token(who), ca });
    return { admin: connect('admin'), limited: connect('act'), forget: () => compact(bed.etcd) };
  });
});

const answer = z.object({ header: z.object({ revision: z.string() }) });

async function compact(etcd: string): Promise<void> {
  const ask = async (what: string, body: object) => {
    const { body: said } = await request(`${etcd}/v3/kv/${what}`, { method: 'POST', body: JSON.stringify(body) });
    return answer.parse(await said.json()).header.revision;
  };
  const revision = await ask('range', { key: Buffer.from('nothing').toString('base64') });
  await ask('compaction', { revision });
}
