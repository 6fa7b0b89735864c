import type { InboxEntry } from '../../../src/domain/inbox.ts';
import type { Incident } from '../../../src/domain/incident.ts';
import { type Language, verbatim } from '../../../src/domain/text.ts';
import type { Clicked, Decision, HomeNow, Surface, VoteQuestion } from '../../../src/surface.ts';

/** A surface that keeps one row per source and key, as the inbox does. */
export interface FakeSurface extends Surface {
  readonly rows: readonly InboxEntry[];
  readonly asked: readonly {
    readonly plan: string;
    readonly user: string;
    readonly decision: Decision;
    readonly from: Clicked | null;
  }[];
  /** What the surface says from now on. */
  set(answers: Partial<Answers>): void;
}

interface Answers {
  readonly vote: VoteQuestion;
  readonly incident: Incident | undefined;
  readonly clusters: readonly string[];
  readonly language: Language;
  readonly home: HomeNow;
  /** Runs before a row is taken; may throw or wait. */
  readonly beforeTake: () => Promise<void>;
}

export function fakeSurface(): FakeSurface {
  const rows = new Map<string, InboxEntry>();
  const asked: FakeSurface['asked'][number][] = [];
  let answers: Answers = {
    vote: { kind: 'refused', says: verbatim('no') },
    incident: undefined,
    clusters: ['prod-eu'],
    language: 'en',
    home: { kind: 'hidden' },
    beforeTake: async () => undefined,
  };
  return {
    get rows() {
      return [...rows.values()];
    },
    asked,
    set(more) {
      answers = { ...answers, ...more };
    },
    async take(entry) {
      await answers.beforeTake();
      const fresh = !rows.has(entry.key);
      if (fresh) rows.set(entry.key, entry);
      return { fresh };
    },
    async askVote(plan, user, decision, from) {
      asked.push({ plan, user, decision, from });
      return answers.vote;
    },
    askIncidentOfThread: async () => answers.incident,
    askHome: async () => answers.home,
    languageOf: async () => answers.language,
    get clusters() {
      return answers.clusters;
    },
  };
}
