import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import { Cluster } from '../../src/domain/cluster.ts';
import type { JsonObject } from '../../src/domain/objects.ts';
import { type ResourceName, resourceNames } from '../../src/domain/resources.ts';
import { resourceOfRaw } from '../../src/kube/parse.ts';
import { absoluteTimes, toCluster } from '../support/fixture.ts';

const folder = fileURLToPath(new URL('.', import.meta.url));

const write = z.strictObject({
  verb: z.enum(['create', 'delete', 'patch']),
  resource: z.string(),
  namespace: z.string().nullable().default(null),
  name: z.string(),
  uid: z.string().nullable(),
  body: z.json(),
});

const fixtureFile = z.strictObject({
  /** The promise, as a sentence. */
  title: z.string().min(1),
  params: z.record(z.string(), z.json()),
  /** Kinds that could not be read. */
  notRead: z.array(z.enum(resourceNames as readonly [ResourceName, ...ResourceName[]])).default([]),
  /** False: of pods only those of other namespaces and nodes were read. */
  podsCovered: z.boolean().default(true),
  expect: z.strictObject({
    /** before: what is offered. */
    title: z.string().optional(),
    assess: z.strictObject({ risk: z.string(), requires: z.array(z.string()), dataLoss: z.string() }).optional(),
    plan: z.array(write).optional(),
    /** after: whether the goal is reached, and whether the wait after a write is over. */
    verify: z.enum(['done', 'pending']).default('done'),
    settled: z.record(z.string(), z.boolean()).default({}),
    /** refused: every reason, word for word and in order. */
    reasons: z.array(z.string()).default([]),
  }),
  objects: z.array(z.record(z.string(), z.json())),
});

export type RemediationFixture = z.infer<typeof fixtureFile> & { readonly id: string; readonly file: string };

/** Every fixture of `test/remediations/<id>/`. Its kind is the first word of its name: before, after or refused. */
export function loadRemediationFixtures(): readonly RemediationFixture[] {
  const ids = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? [entry.name] : [],
  );
  return ids.toSorted().flatMap((id) =>
    readdirSync(join(folder, id))
      .toSorted()
      .map((file) => {
        const read = fixtureFile.safeParse(parse(readFileSync(join(folder, id, file), 'utf8')));
        if (!read.success) throw new Error(`${id}/${file} is no fixture: ${z.prettifyError(read.error)}`);
        return { ...read.data, id, file };
      }),
  );
}

export function kindOf({ file }: RemediationFixture): string {
  return file.split('.')[0] ?? '';
}

export function clusterOf({ objects, notRead, podsCovered }: RemediationFixture): Cluster {
  const all = toCluster(objects, { notRead });
  if (podsCovered) return all;
  return new Cluster({
    identity: all.identity,
    now: all.now,
    objects: all.objects,
    unread: all.unread,
    podCoverage: { kind: 'some', namespaces: new Set(['elsewhere']), nodes: new Set() },
    source: all.source,
  });
}

/** The raw object that a write is about, as the API server would answer it; undefined when there is none. */
export function findRaw(
  fixture: RemediationFixture,
  target: { readonly resource: string; readonly namespace: string | null; readonly name: string },
): JsonObject | undefined {
  const resource = target.resource.split('/')[0];
  const found = fixture.objects.find((object) => {
    const meta = z.object({ name: z.string(), namespace: z.string().nullish() }).parse(object['metadata']);
    return (
      resourceOfRaw(object) === resource && meta.name === target.name && (meta.namespace ?? null) === target.namespace
    );
  });
  return found && (absoluteTimes(found) as JsonObject);
}
