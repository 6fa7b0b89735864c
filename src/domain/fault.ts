import type { Cluster } from './cluster.ts';
import type { JsonValue } from './objects.ts';
import type { Ref } from './ref.ts';
import type { OfferDraft } from './remediation.ts';
import type { ResourceName } from './resources.ts';
import type { Scope } from './scope.ts';
import type { Text } from './text.ts';

export type Severity = 'critical' | 'warning' | 'info';

/** One thing that was read, and what it means. `path` is a field path such as `status.attached`. */
export interface Evidence<S = Text> {
  readonly object: Ref;
  readonly path: string;
  readonly value: string;
  readonly says: S;
}

/** What a person does outside the bot; steps stand safest first. */
export interface ManualStep<S = Text> {
  readonly says: S;
  readonly command?: string;
}

/**
 * What a detector yields: ids, facts and evidence. Sentences are made later from `facts` by the fault's words.
 *
 * - `involved` is the chain in walking order, the objects that the row asks for first. The machine cuts it to 20.
 * - `affected` are those who suffer: waiting pods, halted workloads, a claim that cannot go.
 * - `restsOn` names the objects whose own trouble would explain this finding. When one of them is the subject of, or
 *   suffers from, a finding that stands earlier in the order of causes, this finding becomes its effect.
 * - `progressSeconds` makes the verdict `progress`: Kubernetes is still working on it, look again then.
 */
export interface FindingDraft<Facts> {
  readonly subject: Ref;
  readonly involved: readonly Ref[];
  readonly affected: readonly Ref[];
  readonly restsOn?: readonly Ref[];
  readonly reason?: string;
  readonly facts: Facts;
  readonly evidence: readonly Evidence[];
  readonly progressSeconds?: number | undefined;
  readonly offers?: readonly OfferDraft[];
  readonly manual?: readonly ManualStep[];
}

export interface Words<Facts> {
  /** One sentence: what is wrong. */
  summary(facts: Facts): Text;
  /** Why that follows from what was read, and what happens if nobody acts. */
  explanation(facts: Facts): Text;
}

/** Runbook headings; `npm run gen` makes the fault's page from them. Markdown. */
export interface FaultDoc {
  readonly meaning: string;
  readonly impact: string;
  readonly diagnosis: string;
  readonly mitigation: string;
}

export interface FaultSpec<Id extends string, Facts> {
  readonly id: Id;
  readonly severity: Severity;
  /** Where the fault stands in the order of causes, catalogue §1.3: 1 is the earliest cause, 8 is always an effect. */
  readonly rank: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;
  /** Kinds without which nothing may be concluded. When one is unread the fault is `unknown` and not asked. */
  readonly needs: readonly ResourceName[];
  /** Kinds that only sharpen: when one is unread the finding says so in `unread`, and the fault is judged all the same. */
  readonly uses?: readonly ResourceName[];
  /** Judged only when the whole cluster is asked about: it rests on kinds that no chain of objects leads to. */
  readonly wholeClusterOnly?: true;
  /** Judged only where this holds: it rests on what no API server tells. Elsewhere it is neither found nor `unknown`. */
  readonly onlyWith?: (cluster: Cluster) => boolean;
  readonly words: Words<Facts>;
  readonly doc: FaultDoc;
  /** What would have kept it from happening: one or two sentences, true of every case of it. For post-mortems and its page. */
  readonly prevention: Text;
  /**
   * Yields the findings of the scope. Pure: the clock is `cluster.now`. For rank 8, `causes` are the findings so far,
   * and what rests on none of them is dropped.
   */
  detect(cluster: Cluster, scope: Scope, causes: readonly FoundCause[]): Iterable<FindingDraft<Facts>>;
}

/** What an effect may know of the findings that were made before it. */
export interface FoundCause {
  readonly fault: string;
  readonly verdict: 'found' | 'progress';
  readonly progressSeconds: number | undefined;
  readonly subject: Ref;
  readonly involved: readonly Ref[];
  readonly affected: readonly Ref[];
}

/** A fault as the machine sees it: words already bound to their facts. */
export interface Fault {
  readonly id: string;
  readonly severity: Severity;
  readonly rank: number;
  readonly needs: readonly ResourceName[];
  readonly uses: readonly ResourceName[];
  readonly wholeClusterOnly: boolean;
  readonly onlyWith: (cluster: Cluster) => boolean;
  readonly doc: FaultDoc;
  readonly prevention: Text;
  detect(cluster: Cluster, scope: Scope, causes: readonly FoundCause[]): Iterable<FindingDraft<unknown> & Sentences>;
}

export interface Sentences {
  readonly summary: Text;
  readonly explanation: Text;
}

/** Defines one fault of the catalogue. File name = id; the export is its camelCase. */
export function defineFault<const Id extends string, Facts>(spec: FaultSpec<Id, Facts>): Fault & { readonly id: Id } {
  return {
    id: spec.id,
    severity: spec.severity,
    rank: spec.rank,
    needs: spec.needs,
    uses: spec.uses ?? [],
    wholeClusterOnly: spec.wholeClusterOnly ?? false,
    onlyWith: spec.onlyWith ?? (() => true),
    doc: spec.doc,
    prevention: spec.prevention,
    *detect(cluster, scope, causes) {
      for (const draft of spec.detect(cluster, scope, causes)) {
        yield { ...draft, summary: spec.words.summary(draft.facts), explanation: spec.words.explanation(draft.facts) };
      }
    },
  };
}

/** Evidence from one field of an object that was read. */
export function fact(object: { readonly ref: Ref }, path: string, value: JsonValue | undefined, says: Text): Evidence {
  return {
    object: object.ref,
    path,
    value: value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value),
    says,
  };
}

/** Evidence that an object does not exist, by a read that would have shown it. */
export function absent(object: Ref, says: Text): Evidence {
  return { object, path: 'metadata.name', value: 'not found', says };
}
