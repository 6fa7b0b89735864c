import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { diagnose } from '../src/diagnose.ts';
import { Cluster } from '../src/domain/cluster.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import { readFiles } from '../src/kube/files.ts';
import { catalogue } from '../src/wire.ts';
import { linesOf } from './cluster/bed/report.ts';
import { loadScenarios } from './cluster/bed/scenarios.ts';
import { parseScope } from './support/fixture.ts';

/** States that the scenarios of `test/cluster` left behind (`RECORD=1 npm run test:cluster`), judged without any cluster. */
const folder = fileURLToPath(new URL('recorded/cluster/', import.meta.url));
const recorded = existsSync(folder) ? readdirSync(folder).toSorted() : [];
const expected = z.object({ scope: z.string(), found: z.array(z.string()), everywhere: z.array(z.string()) });

describe('what real controllers made is diagnosed from its recording as it was live', () => {
  it.each(recorded)('%s', async (id) => {
    const { scope, found, everywhere } = expected.parse(parse(readFileSync(join(folder, id, 'expected.yaml'), 'utf8')));
    expect(await findingsOf(id, parseScope(scope))).toEqual(found);
    expect((await findingsOf(id, { kind: 'Cluster' })).toSorted()).toEqual(everywhere.toSorted());
  });

  it('is there for every scenario, and for no other', async () => {
    expect(recorded).toEqual((await loadScenarios()).map(({ id }) => id).toSorted());
  });

  it('names no machine on which it was made', () => {
    for (const id of recorded) {
      const text = readFileSync(join(folder, id, 'snapshot.yaml'), 'utf8');
      expect(text, id).not.toMatch(/kernelVersion|osImage|machineID|systemUUID|\/home\/|\/Users\//);
    }
  });
});

async function findingsOf(id: string, scope: ScopeRef): Promise<readonly string[]> {
  const { input, cost } = await readFiles([join(folder, id, 'snapshot.yaml')], { notRead: [], now: undefined });
  return linesOf(diagnose(new Cluster(input), scope, catalogue, cost));
}
