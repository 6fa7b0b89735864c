import type { PolicyRule } from '../../src/playground/cluster/kinds.ts';
import type { Connection } from './api-server.client.ts';

/** A server with two accounts, and the one thing that no request can do to it. */
export interface ServerUnderTest {
  /** May do everything. */
  readonly admin: Connection;
  /** May do what `limitedRules` say and is called `LIMITED`. */
  readonly limited: Connection;
  /** Forgets every state but the present one, as the regular compaction of etcd does. */
  forget(): Promise<void>;
}

export const LIMITED = 'system:serviceaccount:k8s-storage:k8s-storage-act';

export const limitedRules: readonly PolicyRule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['get', 'delete'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['list'] },
  { apiGroups: [''], resources: ['nodes'], resourceNames: ['mine'], verbs: ['get'] },
  { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['patch'] },
];

type Step = () => void | Promise<void>;

/** What the suite needs of a test runner. */
export interface Runner {
  describe(name: string, define: () => void): void;
  it(name: string, check: Step): void;
  beforeAll(prepare: Step): void;
  afterAll(finish: Step): void;
}

interface Group {
  readonly name: string;
  readonly before: Step[];
  readonly after: Step[];
  readonly parts: ({ readonly name: string; readonly check: Step } | Group)[];
}

/**
 * Runs a suite by hand and gives the names of what failed: so a test can tell that the suite would have been red. A
 * group whose preparation fails has failed as a whole.
 */
export async function failuresOf(define: (runner: Runner) => void): Promise<readonly string[]> {
  const root: Group = { name: '', before: [], after: [], parts: [] };
  let here = root;
  define({
    describe(name, inner) {
      const group: Group = { name, before: [], after: [], parts: [] };
      const outer = here;
      outer.parts.push(group);
      here = group;
      inner();
      here = outer;
    },
    it: (name, check) => void here.parts.push({ name, check }),
    beforeAll: (prepare) => void here.before.push(prepare),
    afterAll: (finish) => void here.after.push(finish),
  });
  return failuresIn(root);
}

async function failuresIn(group: Group): Promise<readonly string[]> {
  const failed: string[] = [];
  const attempt = async (name: string, steps: readonly Step[]): Promise<boolean> => {
    try {
      for (const step of steps) await step();
      return true;
    } catch {
      failed.push(name);
      return false;
    }
  };
  if (await attempt(group.name, group.before))
    for (const part of group.parts) {
      if ('parts' in part) failed.push(...(await failuresIn(part)));
      else await attempt(part.name, [part.check]);
    }
  await attempt(group.name, group.after);
  return failed;
}
