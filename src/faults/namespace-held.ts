import { deletionTimestampOf, MOST_EXAMPLES, OWNER_GRACE_MS } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type FindingDraft, type FoundCause, fact } from '../domain/fault.ts';
import type { NamespaceObject, ObjectMeta } from '../domain/objects.ts';
import { deletingForMs, isDeleting } from '../domain/pod.ts';
import { type Ref, refKey } from '../domain/ref.ts';
import { findResourceOfKind } from '../domain/resources.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, sentences, type Text, zh } from '../domain/text.ts';

interface Facts {
  readonly namespace: string;
  readonly deletedFor: Text;
  readonly left: readonly string[];
  readonly cause: string;
  readonly isProgress: boolean;
}

/** An object of the namespace that is still there, and what was found about it. */
interface Left {
  readonly object: ObjectMeta;
  readonly causes: readonly FoundCause[];
}

/**
 * A namespace is being deleted and waits for what is left in it, and that has faults of its own. Always an effect: the
 * namespace controller does its work, and its finalizer is right.
 */
export const namespaceHeld = defineFault<'namespace-held', Facts>({
  id: 'namespace-held',
  severity: 'warning',
  rank: 8,
  needs: ['namespaces'],
  uses: ['pods', 'persistentvolumeclaims', 'volumesnapshots'],
  words: {
    summary: (f) => ({
      en: en`Namespace ${f.namespace} was deleted ${f.deletedFor} ago and waits for ${named(f.left, 'object')} in it.`,
      zh: zh`名字空间 ${f.namespace} 于 ${f.deletedFor}前被删除，仍在等待其中的${named(f.left, 'object')}。`,
    }),
    explanation: (f) =>
      sentences(
        {
          en: en`A namespace goes when everything in it is gone, and that cannot go because of ${f.cause}.`,
          zh: zh`其中的内容全部消失后，名字空间才会消失，而这些内容因 ${f.cause} 无法消失。`,
        },
        f.isProgress
          ? { en: 'That is still being worked on.', zh: '该问题仍在处理中。' }
          : { en: 'It goes by itself as soon as that is solved.', zh: '该问题解决后，名字空间会自行消失。' },
        {
          en: 'Its own finalizer protects what is left and must stay.',
          zh: '它自己的 Finalizer 保护着剩下的内容，必须保留。',
        },
      ),
  },
  doc: {
    meaning:
      'The namespace is Terminating, and objects are left in it that cannot go because of a storage fault of their own.',
    impact:
      'No new object can be made in it, and nobody can make a namespace of that name again. What is left in it may hold data.',
    diagnosis:
      'The conditions of the namespace name the kinds and finalizers that are left. The finding that is named as the cause is what to treat.',
    mitigation:
      'Treat the cause; the namespace then goes by itself. Removing `kubernetes` from `spec.finalizers`, or calling the finalize API, the common advice, leaves claims, snapshots and volumes behind that nobody finds again.',
  },
  prevention: {
    en: 'Delete the workloads and claims of a namespace and wait until they are gone before the namespace itself is deleted.',
    zh: '先删除名字空间中的工作负载和申领并等待其消失，再删除名字空间本身。',
  },

  *detect(cluster: Cluster, scope: Scope, causes: readonly FoundCause[]): Iterable<FindingDraft<Facts>> {
    const held = scope.namespaces.filter((namespace) => deletingForMs(namespace, cluster.now) > OWNER_GRACE_MS);
    if (held.length === 0 || causes.length === 0) return;
    const byNamespace = leftByNamespace(new Set(held.map(({ name }) => name)), causes, cluster);
    for (const namespace of held) {
      const left = byNamespace.get(namespace.name) ?? [];
      if (left.length > 0) yield toFinding(namespace, left, cluster);
    }
  },
});

/** What exists in these namespaces and has, or suffers from, a fault; what is being deleted stands first. */
function leftByNamespace(
  names: ReadonlySet<string>,
  causes: readonly FoundCause[],
  cluster: Cluster,
): ReadonlyMap<string, readonly Left[]> {
  const found = new Map<string, { object: ObjectMeta; causes: FoundCause[] }>();
  for (const cause of causes) {
    for (const ref of new Map([cause.subject, ...cause.affected].map((one) => [refKey(one), one])).values()) {
      if (ref.namespace === null || !names.has(ref.namespace)) continue;
      const known = found.get(refKey(ref));
      if (known) known.causes.push(cause);
      else {
        const object = findLeft(ref, cluster);
        if (object) found.set(refKey(ref), { object, causes: [cause] });
      }
    }
  }
  const byNamespace = new Map<string, Left[]>();
  for (const left of [...found.values()].toSorted(
    (a, b) => Number(isDeleting(b.object)) - Number(isDeleting(a.object)),
  )) {
    const list = byNamespace.get(left.object.namespace ?? '');
    if (list) list.push(left);
    else byNamespace.set(left.object.namespace ?? '', [left]);
  }
  return byNamespace;
}

function findLeft(ref: Ref, cluster: Cluster): ObjectMeta | undefined {
  const resource = findResourceOfKind(ref.kind);
  return resource && cluster.findObject(resource, ref.namespace, ref.name);
}

function toFinding(namespace: NamespaceObject, left: readonly Left[], cluster: Cluster): FindingDraft<Facts> {
  const causes = [...new Set(left.flatMap((one) => one.causes))];
  const isProgress = causes.every(({ verdict }) => verdict === 'progress');
  const cause = causes.find(({ verdict }) => isProgress || verdict === 'found');
  return {
    subject: namespace.ref,
    involved: [namespace.ref, ...left.map(({ object }) => object.ref), ...causes.map(({ subject }) => subject)],
    affected: [namespace.ref],
    restsOn: left.map(({ object }) => object.ref),
    facts: {
      namespace: namespace.name,
      deletedFor: duration(deletingForMs(namespace, cluster.now)),
      left: left.map(({ object }) => `${object.ref.kind} ${object.name}`),
      cause: cause?.fault ?? '',
      isProgress,
    },
    evidence: [
      fact(namespace, 'metadata.deletionTimestamp', deletionTimestampOf(namespace), {
        en: 'the deletion cannot be withdrawn',
        zh: '删除无法撤回',
      }),
      fact(namespace, 'status.phase', namespace.phase, {
        en: 'it waits until nothing is left in it',
        zh: '它会等到其中没有任何剩余内容',
      }),
      ...left
        .slice(0, MOST_EXAMPLES)
        .map(({ object }) =>
          fact(
            object,
            'metadata.finalizers',
            [...object.finalizers],
            isDeleting(object)
              ? { en: 'is being deleted and cannot go', zh: '正在被删除，但无法消失' }
              : { en: 'is still there', zh: '仍然存在' },
          ),
        ),
      ...(left.length > MOST_EXAMPLES
        ? [
            fact(namespace, 'objects', left.length, {
              en: en`${left.length} objects with faults are left; ${MOST_EXAMPLES} are shown`,
              zh: zh`还剩 ${left.length} 个有故障的对象；这里显示 ${MOST_EXAMPLES} 个`,
            }),
          ]
        : []),
    ],
    progressSeconds: isProgress ? Math.max(...causes.map((one) => one.progressSeconds ?? 0)) : undefined,
    manual: [
      {
        says: {
          en: 'Treat the cause; the namespace then goes by itself. Leave its own finalizer alone.',
          zh: '请处理根因；之后名字空间会自行消失。不要动它自己的 Finalizer。',
        },
      },
    ],
  };
}
