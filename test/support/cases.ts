import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { z } from 'zod';
import type { ScopeRef } from '../../src/domain/scope.ts';
import { parseScope } from './fixture.ts';

const named = z.object({ kind: z.string(), namespace: z.string().nullish(), name: z.string() });
const caseFile = z.object({
  id: z.string(),
  target: z.string(),
  objects: z.array(z.record(z.string(), z.unknown())),
  check: z.object({
    state: z.enum(['found', 'progress', 'healthy']),
    faults: z.array(z.string()).nullish(),
    culprit: z.array(named).nullish(),
    offers: z.array(z.string()).nullish(),
    wants: z.array(z.string()).nullish(),
    targets: z.record(z.string(), z.array(z.string())).nullish(),
  }),
});

export type KubeObject = Readonly<Record<string, unknown>>;

/** A real incident with its right answer. */
export interface Case {
  readonly id: string;
  readonly scope: ScopeRef;
  readonly objects: readonly KubeObject[];
  readonly state: 'found' | 'progress' | 'healthy';
  readonly faults: readonly string[];
  readonly culprit: readonly { readonly kind: string; readonly namespace: string | null; readonly name: string }[];
  readonly offers: readonly string[];
  readonly wants: readonly string[];
  readonly targets: Readonly<Record<string, readonly string[]>>;
}

const folder = fileURLToPath(new URL('../cases/', import.meta.url));

/** Every case of `test/cases`, in order. */
export const cases: readonly Case[] = readdirSync(folder)
  .filter((name) => name.endsWith('.yaml'))
  .toSorted()
  .map((name) => readCase(`${folder}${name}`));

export function findCase(id: string): Case {
  const one = cases.find((candidate) => candidate.id === id);
  if (!one) throw new Error(`no case ${id}`);
  return one;
}

function readCase(path: string): Case {
  const { id, target, objects, check } = caseFile.parse(parse(readFileSync(path, 'utf8')));
  return {
    id,
    scope: parseScope(target),
    objects,
    state: check.state,
    faults: check.faults ?? [],
    culprit: (check.culprit ?? []).map(({ kind, namespace, name }) => ({ kind, namespace: namespace ?? null, name })),
    offers: check.offers ?? [],
    wants: check.wants ?? [],
    targets: check.targets ?? {},
  };
}

/** Cases that only a text tells apart (rows marked † in the catalogue), and what is told when the text is gone. */
export const fallbacks: Readonly<Record<string, string>> = {
  '061-rbac-csinodes-forbidden': 'claim-provisioning-failed',
  // The claim may be made again only after a plain no of its provisioner, and that stands in an event.
  '066-restore-smaller-than-snapshot': 'claim-provisioning-failed',
  '078-superblock-unreadable-io-error': 'mount-failed',
  '085-rbd-image-still-used-watcher': 'mount-failed',
  '087-configmap-missing-not-storage': 'mount-failed',
  '088-fsgroup-chown-slow': 'mount-failed',
  '101-offline-expansion-needs-detach': 'resize-failed',
};
