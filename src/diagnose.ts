import { type Cluster, couldNotRead, type Unread } from './domain/cluster.ts';
import { messageOf, Refused } from './domain/errors.ts';
import type { Evidence, Fault, FindingDraft, FoundCause, Sentences } from './domain/fault.ts';
import type { ObjectMeta } from './domain/objects.ts';
import { mayStorageBlock, waitsForItsPods } from './domain/placement.ts';
import { deletingForMs, isUnscheduled, isWaiting, unscheduledMs, waitedMs } from './domain/pod.ts';
import { describeRef, type Ref, refKey, uniqueRefs } from './domain/ref.ts';
import { type OfferDraft, type Remediation, safetyRank } from './domain/remediation.ts';
import { digestOf, type Finding, type Offer, type ReadCost, type Report } from './domain/report.ts';
import { type ResourceName, resources } from './domain/resources.ts';
import { buildScope, type Scope, type ScopeRef } from './domain/scope.ts';
import { duration, en, type Text, zh } from './domain/text.ts';
import { minutes } from './domain/time.ts';
import { type PlannedWrite, toPlanned } from './domain/write.ts';

/** The catalogues, handed in so that a test can run one fault alone. */
export interface Catalogue {
  readonly faults: readonly Fault[];
  readonly remediations: readonly Remediation[];
}

const MOST_INVOLVED = 20;
const MOST_OFFERS_OF_ONE_REMEDIATION = 3;

interface Unknown {
  readonly fault: string;
  readonly reason: Text;
}

interface Draft extends FindingDraft<unknown>, Sentences {
  readonly fault: Fault;
}

/**
 * Judges one snapshot: every fault once, causes before effects, each offer with its exact plan and digest.
 *
 * Pure: the clock is the snapshot's. Promises: it never throws for any snapshot; a detector that does becomes that
 * fault's `unknown`; a kind that was not read never counts as empty; what is visibly not well and explained by no
 * finding stands in `unexplained`.
 */
export function diagnose(cluster: Cluster, scopeRef: ScopeRef, whole: Catalogue, read: ReadCost): Report {
  const catalogue = { ...whole, faults: whole.faults.filter((fault) => fault.onlyWith(cluster)) };
  const scope = buildScope(cluster, scopeRef);
  const unknown: Unknown[] = [];
  const drafts: Draft[] = [];
  for (const fault of faultsFor(scopeRef, catalogue).toSorted((a, b) => a.rank - b.rank)) {
    const unread = fault.needs.find((resource) => !cluster.isRead(resource));
    if (unread !== undefined) {
      unknown.push({ fault: fault.id, reason: couldNotRead(unread, cluster.whyUnread(unread)) });
      continue;
    }
    try {
      const causes = fault.rank === EFFECTS_ONLY ? drafts.filter(mayBeCause).map(toCause) : [];
      for (const draft of fault.detect(cluster, scope, causes)) drafts.push({ ...draft, fault });
    } catch (error) {
      const failure = messageOf(error);
      const reason =
        error instanceof Refused
          ? error.says
          : { en: en`its check failed: ${failure}`, zh: zh`检查未能完成：${failure}` };
      unknown.push({ fault: fault.id, reason });
    }
  }
  const linked = link(drafts);
  unknown.push(...unreadPods(cluster, scope, catalogue, unknown));
  const findings = toFindings(linked, cluster, catalogue, unknown);
  return {
    version: 1,
    cluster: cluster.identity,
    now: new Date(cluster.now).toISOString().replace('.000Z', 'Z'),
    scope: scopeRef.kind === 'Cluster' ? { kind: 'Cluster', namespace: null, name: null } : scopeRef,
    findings,
    unknown: unknown.toSorted((a, b) => compareText(a.fault, b.fault)),
    unexplained: findUnexplained(
      cluster,
      scope,
      linked.map(({ draft }) => draft),
    ),
    read,
  };
}

/**
 * A targeted read may lack the pods of a namespace that the chain leads to. What was found there stands, but silence of a
 * fault that looks at pods proves nothing: it is `unknown` as well.
 */
function unreadPods(
  cluster: Cluster,
  scope: Scope,
  { faults }: Catalogue,
  known: readonly Unknown[],
): readonly Unknown[] {
  if (cluster.podCoverage.kind === 'all') return [];
  const missing = scope.claims.find(
    (claim) => claim.namespace !== null && !cluster.coversPodsOfNamespace(claim.namespace),
  );
  if (!missing) return [];
  return faults
    .filter((fault) => fault.needs.includes('pods') && !known.some((entry) => entry.fault === fault.id))
    .map((fault) => ({
      fault: fault.id,
      reason: {
        en: en`did not read the pods of namespace ${missing.namespace}`,
        zh: zh`没有读取名字空间 ${missing.namespace} 中的 Pod`,
      },
    }));
}

/** The faults that are judged for a scope. */
function faultsFor(scope: ScopeRef, { faults }: Catalogue): readonly Fault[] {
  return scope.kind === 'Cluster' ? faults : faults.filter((fault) => !fault.wholeClusterOnly);
}

/** The kinds to be read for a scope: what its faults look at, and what the preflights of the remediations do. */
export function needsOf(catalogue: Catalogue, scope: ScopeRef): readonly ResourceName[] {
  const looked = faultsFor(scope, catalogue).flatMap((fault) => [...fault.needs, ...fault.uses]);
  return [...new Set([...looked, ...catalogue.remediations.flatMap((remediation) => remediation.needs)])];
}

function toCause(draft: Draft): FoundCause {
  return {
    fault: draft.fault.id,
    verdict: draft.progressSeconds === undefined ? 'found' : 'progress',
    progressSeconds: draft.progressSeconds,
    subject: draft.subject,
    involved: draft.involved,
    affected: draft.affected,
  };
}

interface Linked {
  readonly draft: Draft;
  readonly cause: Draft | undefined;
}

/** Faults of this rank are effects of others, never causes (catalogue §1.3, number 8). */
const EFFECTS_ONLY = 8;

/**
 * Says which finding causes which. A finding rests on objects; one that is about such an object, or from which it
 * suffers, explains it, if it stands earlier in the order of causes or at the same place of it. The order inside one
 * place says nothing about cause and effect: a claim that waiting pods hold rests on what makes them wait, though
 * multi-attach stands after claims. So that this stays a forest, a finding is never explained by one of its own fault at
 * its own place, nor by one that it explains itself; earlier ones choose first. An effect that rests on nothing found
 * is no finding at all.
 */
function link(drafts: readonly Draft[]): readonly Linked[] {
  const ordered = drafts.toSorted(byOrderOfCauses);
  const explains = indexCauses(ordered);
  const causeOf = new Map<Draft, Draft>();
  for (const draft of ordered) {
    const cause = firstDefined(draft.restsOn ?? [], (ref) =>
      explains
        .get(refKey(ref))
        ?.find((candidate) => mayExplain(candidate, draft) && !leadsTo(candidate, draft, causeOf)),
    );
    if (cause) causeOf.set(draft, cause);
  }
  return ordered
    .filter((draft) => draft.fault.rank !== EFFECTS_ONLY || causeOf.has(draft))
    .map((draft) => ({ draft, cause: causeOf.get(draft) }))
    .toSorted(byPlaceInReport);
}

/** By object, who could explain it: what is wrong before what is in progress, then in the order of causes. */
function indexCauses(ordered: readonly Draft[]): ReadonlyMap<string, readonly Draft[]> {
  const index = new Map<string, Draft[]>();
  for (const draft of [...ordered.filter((one) => !isProgress(one)), ...ordered.filter(isProgress)]) {
    if (!mayBeCause(draft)) continue;
    for (const key of new Set([draft.subject, ...draft.affected].map(refKey))) {
      const list = index.get(key);
      if (list) list.push(draft);
      else index.set(key, [draft]);
    }
  }
  return index;
}

function mayBeCause(draft: Draft): boolean {
  return draft.fault.severity !== 'info' && draft.fault.rank !== EFFECTS_ONLY;
}

function isProgress(draft: Draft): boolean {
  return draft.progressSeconds !== undefined;
}

function mayExplain(cause: Draft, effect: Draft): boolean {
  if (cause === effect || cause.fault.rank > effect.fault.rank) return false;
  return cause.fault.rank < effect.fault.rank || cause.fault.id !== effect.fault.id;
}

function leadsTo(from: Draft, to: Draft, causeOf: ReadonlyMap<Draft, Draft>): boolean {
  for (let at: Draft | undefined = from; at; at = causeOf.get(at)) if (at === to) return true;
  return false;
}

function byOrderOfCauses(a: Draft, b: Draft): number {
  return (
    a.fault.rank - b.fault.rank ||
    severityRank(a) - severityRank(b) ||
    b.affected.length - a.affected.length ||
    compareText(a.fault.id, b.fault.id) ||
    compareText(describeRef(a.subject), describeRef(b.subject))
  );
}

/** Trouble before progress before information; causes before effects; then the order of causes. */
function byPlaceInReport(a: Linked, b: Linked): number {
  return place(a) - place(b) || byOrderOfCauses(a.draft, b.draft);
}

function place({ draft, cause }: Linked): number {
  if (draft.fault.severity === 'info') return 4;
  return (cause === undefined ? 0 : 2) + (isProgress(draft) ? 1 : 0);
}

function severityRank(draft: Draft): number {
  return ['critical', 'warning', 'info'].indexOf(draft.fault.severity);
}

function toFindings(
  linked: readonly Linked[],
  cluster: Cluster,
  catalogue: Catalogue,
  unknown: Unknown[],
): readonly Finding[] {
  const idOf = new Map<Draft, string>(linked.map(({ draft }, i) => [draft, `f${i + 1}`]));
  return linked.map(({ draft, cause }, i) => {
    const offers =
      isProgress(draft) || draft.fault.severity === 'info' ? [] : offersOf(draft, cluster, catalogue, unknown);
    const involved = uniqueRefs(draft.involved);
    return {
      id: `f${i + 1}`,
      fault: draft.fault.id,
      reason: draft.reason ?? null,
      verdict: isProgress(draft) ? 'progress' : 'found',
      severity: draft.fault.severity,
      causedBy: (cause && idOf.get(cause)) ?? null,
      subject: draft.subject,
      involved: involved.slice(0, MOST_INVOLVED),
      affected: uniqueRefs(draft.affected),
      summary: draft.summary,
      explanation: draft.explanation,
      evidence: [...draft.evidence, ...evidenceOfMore(draft.subject, involved.length)],
      unread: unreadOf(draft.fault, cluster),
      ...(draft.progressSeconds === undefined
        ? {}
        : { recheckAfterSeconds: Math.max(1, Math.ceil(draft.progressSeconds)) }),
      offers,
      manual: draft.manual ?? [],
    };
  });
}

function evidenceOfMore(object: Ref, count: number): readonly Evidence[] {
  if (count <= MOST_INVOLVED) return [];
  const says = {
    en: en`${count} objects are involved; the first ${MOST_INVOLVED} are named`,
    zh: zh`涉及 ${count} 个对象；这里列出前 ${MOST_INVOLVED} 个`,
  };
  return [{ object, path: 'involved', value: String(count), says }];
}

function unreadOf(fault: Fault, cluster: Cluster): readonly Unread[] {
  return fault.uses.flatMap((resource) => {
    const reason = cluster.whyUnread(resource);
    return reason === undefined ? [] : [{ resource, reason }];
  });
}

/** A bug in a remediation costs that finding its offers, never the report. */
function offersOf(draft: Draft, cluster: Cluster, catalogue: Catalogue, unknown: Unknown[]): readonly Offer[] {
  try {
    return toOffers(draft.offers ?? [], cluster, catalogue);
  } catch (error) {
    const failure = messageOf(error);
    unknown.push({
      fault: draft.fault.id,
      reason: {
        en: en`its offers could not be worked out: ${failure}`,
        zh: zh`无法得出可提供的修复：${failure}`,
      },
    });
    return [];
  }
}

/** The offers of one finding, safest first. What its own preflight refuses now is no offer. */
function toOffers(drafts: readonly OfferDraft[], cluster: Cluster, catalogue: Catalogue): readonly Offer[] {
  const offers: Offer[] = [];
  for (const draft of drafts) {
    const offer = toOffer(draft, cluster, catalogue);
    if (offer && !offers.some((other) => other.digest === offer.digest)) offers.push(offer);
  }
  const counts = new Map<string, number>();
  return offers
    .toSorted((a, b) => safetyRank(a) - safetyRank(b))
    .filter((offer) => {
      const target = `${offer.remediation}\n${offer.plan.map((write) => `${write.resource}/${write.namespace}/${write.name}`).join(' ')}`;
      const count = (counts.get(target) ?? 0) + 1;
      counts.set(target, count);
      return count <= MOST_OFFERS_OF_ONE_REMEDIATION;
    });
}

/** Works an offer out: plan, digest, proofs, data loss. Undefined when the state does not allow it after all. */
export function toOffer(draft: OfferDraft, cluster: Cluster, catalogue: Catalogue): Offer | undefined {
  const remediation = catalogue.remediations.find((candidate) => candidate.id === draft.remediation);
  if (!remediation) return undefined;
  try {
    if (remediation.preflight(draft.params, cluster).length > 0) return undefined;
    const plan = remediation.plan(draft.params, cluster).map(toPlanned);
    const { risk, requires, dataLoss } = remediation.assess(draft.params, cluster);
    return {
      remediation: remediation.id,
      risk,
      params: draft.params,
      dataLoss,
      requires,
      blocked: blockedBy(plan, cluster),
      plan,
      digest: digestOf({ cluster: cluster.identity.uid, remediation: remediation.id, params: draft.params, plan }),
      undo: remediation.doc.undo,
    };
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

/** A plan that changes the storage backend needs somebody who can. */
function blockedBy(plan: readonly PlannedWrite[], cluster: Cluster): Text | null {
  if (cluster.writesBackend || !plan.some(({ resource }) => resource === 'backendvolumes')) return null;
  return {
    en: 'no storage backend is connected that the bot could change: do it there by hand',
    zh: '没有连接机器人可以更改的存储后端：请在存储后端手动操作',
  };
}

/**
 * Objects of the scope that are visibly not well and that no finding explains: deleting for more than 15 minutes, a
 * claim Pending or a pod with claims waiting or without a node for more than 5, an attachment with an error. Progress and
 * information explain, too. What something else than storage keeps is not listed.
 */
function findUnexplained(cluster: Cluster, scope: Scope, drafts: readonly Draft[]): Report['unexplained'] {
  const explained = new Set<string>();
  for (const draft of drafts) {
    for (const ref of [draft.subject, ...draft.involved, ...draft.affected]) explained.add(refKey(ref));
  }
  const list: { object: Ref; says: Text }[] = [];
  const report = (object: ObjectMeta, says: Text) => {
    if (explained.has(refKey(object.ref))) return;
    explained.add(refKey(object.ref));
    list.push({ object: object.ref, says });
  };
  const groups: readonly (readonly ObjectMeta[])[] = [
    scope.claims,
    scope.volumes,
    scope.pods,
    scope.attachments,
    scope.snapshots,
    scope.namespaces,
  ];
  for (const object of each(groups)) {
    const deleting = deletingForMs(object, cluster.now);
    // What a pod may take to end is its own; then it is looked at like anything else that goes.
    const own = (object.graceSeconds ?? 0) * 1000;
    // A pod on a machine that is silent goes when that answers or is told dead; the node is what is wrong, not its storage.
    if (deleting - own > minutes(15) && !isLeftToSilentNode(object, cluster)) {
      const since = duration(deleting);
      const finalizers = object.finalizers.join(', ');
      const held: Text =
        finalizers === ''
          ? { en: 'no finalizers', zh: '没有 Finalizer' }
          : { en: en`finalizers ${finalizers}`, zh: zh`Finalizer 有 ${finalizers}` };
      const looked = checkedFor(object.resource);
      report(object, {
        en: en`deleting for ${since}; ${held}; checked: ${looked}`,
        zh: zh`已删除 ${since} 仍未结束；${held}；已检查：${looked}`,
      });
    }
  }
  for (const claim of scope.claims) {
    const age = cluster.now - claim.createdAt;
    if (claim.phase === 'Pending' && claim.deletedAt === undefined && age > minutes(5)) {
      if (waitsForItsPods(claim, cluster, (pod) => explained.has(refKey(pod.ref)))) continue;
      const since = duration(age);
      report(claim, {
        en: en`Pending for ${since}; checked: its class, its volume, its pods`,
        zh: zh`处于 Pending 已有 ${since}；已检查：它的存储类、卷和 Pod`,
      });
    }
  }
  for (const pod of scope.pods) {
    if (!isWaiting(pod, cluster) || cluster.claimsOfPod(pod).length === 0) continue;
    const waited = waitedMs(pod, undefined, cluster.now);
    if (waited <= minutes(5)) continue;
    const since = duration(waited);
    report(pod, {
      en: en`waiting for ${since}; checked: its claims, volumes, attachments and node`,
      zh: zh`已等待 ${since}；已检查：它的申领、卷、挂接和节点`,
    });
  }
  for (const pod of scope.pods) {
    if (!isUnscheduled(pod) || cluster.claimsOfPod(pod).length === 0) continue;
    const waited = unscheduledMs(pod, cluster.now);
    if (waited <= minutes(5) || !mayStorageBlock(pod, cluster)) continue;
    const since = duration(waited);
    report(pod, {
      en: en`without a node for ${since}; checked: its claims and where its volumes are reachable`,
      zh: zh`没有节点已有 ${since}；已检查：它的申领，以及它的卷可以从哪里访问`,
    });
  }
  for (const attachment of scope.attachments) {
    const error = attachment.detachError ?? (attachment.attached ? undefined : attachment.attachError);
    if (!error) continue;
    report(attachment, {
      en: en`the storage backend answered: ${error.message}`,
      zh: zh`存储后端的答复：${error.message}`,
    });
  }
  return list;
}

function isLeftToSilentNode(object: ObjectMeta, cluster: Cluster): boolean {
  const pod = object.resource === 'pods' ? cluster.findPod(object.namespace ?? '', object.name) : undefined;
  return pod?.nodeName !== undefined && pod.finalizers.length === 0 && cluster.nodeState(pod.nodeName) === 'not-ready';
}

function* each<T>(groups: readonly (readonly T[])[]): Generator<T> {
  for (const group of groups) yield* group;
}

const checked: Partial<Readonly<Record<ResourceName, Text>>> = {
  persistentvolumeclaims: { en: 'pods, snapshots, finalizers', zh: 'Pod、快照、Finalizer' },
  persistentvolumes: { en: 'claim, attachments, finalizers', zh: '申领、挂接、Finalizer' },
  pods: { en: 'node, volumes, finalizers', zh: '节点、卷、Finalizer' },
  volumeattachments: { en: 'node, volume, errors', zh: '节点、卷、错误' },
};

function checkedFor(resource: ResourceName): Text {
  const { kind } = resources[resource];
  return checked[resource] ?? { en: en`finalizers of the ${kind}`, zh: zh`${kind} 的 Finalizer` };
}

/** By code unit: the same in every locale, and fast. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function firstDefined<T, U>(items: readonly T[], pick: (item: T) => U | undefined): U | undefined {
  for (const item of items) {
    const found = pick(item);
    if (found !== undefined) return found;
  }
  return undefined;
}
