import { few, quoted, sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { areRightsRead, type BoundRole, type Denial, type Refused, refusalsOf, roleToWiden } from '../domain/rbac.ts';
import { describeRef, missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';

interface Facts {
  /** Undefined when the refusal does not name the account. */
  readonly user: string | undefined;
  readonly rights: readonly string[];
  readonly role: string | undefined;
  readonly isRoleMissing: boolean;
  readonly areRightsRead: boolean;
  readonly object: string;
  readonly longest: string;
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(2);

/**
 * The API server refused a storage component or controller what it needs, so what it should do does not happen. Told by
 * the refusal's text; where roles can be read, none that is bound to the account grants it (F02d, F19).
 */
export const storageRbacDenied = defineFault<'storage-rbac-denied', Facts>({
  id: 'storage-rbac-denied',
  severity: 'warning',
  rank: 2,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'volumeattachments'],
  uses: [
    'events',
    'pods',
    'statefulsets',
    'volumesnapshots',
    'clusterroles',
    'clusterrolebindings',
    'roles',
    'rolebindings',
  ],
  words: {
    summary: (f) =>
      f.isProgress
        ? `${f.user ?? 'A controller'} was refused ${rightsOf(f)}; that is only ${f.longest} old.`
        : `${f.user ?? 'A controller'} may not ${rightsOf(f)}, so ${f.object} does not get on.`,
    explanation: (f) => {
      if (f.isProgress) return 'Roles are often applied a moment after the workload. Nothing needs to be done yet.';
      const refused =
        'The API server itself refused it, so no driver and no backend was asked, and nothing that is done to the waiting objects helps.';
      if (!f.areRightsRead)
        return `${refused} The roles could not all be read here, so which one lacks it is not known.`;
      if (f.role === undefined) return `${refused} No role is bound to that account at all.`;
      return f.isRoleMissing
        ? `${refused} The account is bound to ${f.role}, which does not exist.`
        : `${refused} No role that is bound to the account grants it; ${f.role} is the one that comes nearest.`;
    },
  },
  doc: {
    meaning:
      'A storage component or a controller asked the API server for something that its account is not allowed, and something waits for that. The text is `… is forbidden: User "…" cannot …`, or `cannot set blockOwnerDeletion … can\'t set finalizers on`: then the controller lacks `update` on the `finalizers` of the owner.',
    impact: 'Volumes are not made, attached, resized or deleted; finalizers stay. It never ends by itself.',
    diagnosis:
      "Read who asked, which verb and which resource. A 401 or 403 of the storage backend is another fault (`claim-provisioning-failed`), and kubelet's `no relationship found` only says that an object does not exist. `exceeded quota` is a quota. The object named in the refusal, a CSINode for instance, is normally there and healthy.",
    mitigation:
      'Apply the RBAC manifest of the driver release that runs: roles are usually left behind by an upgrade of the images alone. Grant exactly what the manifest lists. The common advice, a binding to cluster-admin, gives a storage driver every secret of the cluster.',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const groups = Map.groupBy(refusalsOf(cluster, scope), ({ denial, complaint }) =>
      denial.user === undefined ? `${complaint.component}\n${denial.resource}` : denial.user,
    );
    for (const refused of groups.values()) yield toFinding(refused, cluster);
  },
});

function toFinding(refused: readonly Refused[], cluster: Cluster): FindingDraft<Facts> {
  const denials = refused.map(({ denial }) => denial);
  const role = roleToWiden(denials, cluster);
  const longest = Math.max(...refused.map(({ complaint }) => complaint.waitedMs));
  const isProgress = longest <= SETTLES_WITHIN_MS;
  const waiting = uniqueRefs(refused.flatMap((one) => [one.complaint.object.ref, ...notMade(one, cluster)]));
  const subject = role?.ref ?? waiting[0] ?? missingRef('ClusterRole', null, '');
  return {
    subject,
    involved: uniqueRefs([subject, ...waiting]),
    affected: affectedBy(refused, waiting, cluster),
    facts: {
      user: denials[0]?.user,
      rights: [...new Set(denials.map(inWords))],
      role: role && describeRef(role.ref),
      isRoleMissing: role !== undefined && role.role === undefined,
      areRightsRead: denials.every((denial) => areRightsRead(denial, cluster)),
      object: waiting[0] ? describeRef(waiting[0]) : 'something',
      longest: duration(longest),
      isProgress,
    },
    evidence: evidenceOf(refused, role),
    progressSeconds: isProgress ? Math.max(1, (SETTLES_WITHIN_MS - longest) / 1000) : undefined,
    manual: isProgress ? waitByHand : manualFor(denials, role),
  };
}

/** A claim that could not be created is named all the same. */
function notMade({ denial, complaint }: Refused, cluster: Cluster): readonly Ref[] {
  const { object, namespace } = denial;
  const isClaim = /persistentvolumeclaims?\b/i.test(`${denial.resource} ${complaint.message}`);
  const isCreation = denial.verb === 'create' || denial.resource.endsWith('/finalizers');
  const name = object || (/create Claim (\S+) for Pod/.exec(complaint.message)?.[1] ?? '');
  if (!isClaim || !isCreation || name === '') return [];
  const home = namespace ?? complaint.object.namespace;
  return home === null || cluster.findClaim(home, name) ? [] : [missingRef('PersistentVolumeClaim', home, name)];
}

function affectedBy(refused: readonly Refused[], waiting: readonly Ref[], cluster: Cluster): readonly Ref[] {
  const pods = refused.flatMap(({ complaint: { object } }): readonly Pod[] => {
    if (object.resource === 'persistentvolumeclaims') return cluster.podsOfClaim(object);
    const pod = object.resource === 'pods' ? cluster.findPod(object.namespace ?? '', object.name) : undefined;
    return pod ? [pod] : [];
  });
  return uniqueRefs([...waiting, ...sufferers(pods, cluster)]);
}

function evidenceOf(refused: readonly Refused[], role: BoundRole | undefined): readonly Evidence[] {
  const first = refused[0]?.complaint.object;
  const texts = refused.map(({ complaint }) =>
    fact(
      complaint.source,
      complaint.path,
      complaint.message,
      `the API server's answer about ${describeRef(complaint.object.ref)}, which has waited ${duration(complaint.waitedMs)}`,
    ),
  );
  return [
    ...(first ? withCount(first, 'refusals', texts, 'refusals') : []),
    ...(role?.role
      ? [
          fact(
            role.role,
            'rules',
            quoted(
              few(role.role.rules, 6)
                .map((rule) => `${rule.verbs.join(',')} ${rule.resources.join(',')}`)
                .join('; '),
            ),
            'bound to the account, and grants nothing of it',
          ),
        ]
      : []),
    ...(role && !role.role
      ? [
          {
            object: role.ref,
            path: 'metadata.name',
            value: 'not found',
            says: 'a binding names this role, and it does not exist',
          },
        ]
      : []),
  ];
}

function manualFor(denials: readonly Denial[], role: BoundRole | undefined): readonly ManualStep[] {
  const [first] = denials;
  if (!first) return [];
  const where = first.namespace === null ? '' : ` -n ${shellWord(first.namespace)}`;
  const what =
    first.group === '' ? first.resource : first.resource.replace(/^[^/]+/, (plural) => `${plural}.${first.group}`);
  return [
    ...(first.user === undefined
      ? []
      : [
          {
            says: 'Ask the API server whether it is still refused.',
            command: `kubectl auth can-i ${shellWord(first.verb)} ${shellWord(what)}${where} --as=${shellWord(first.user)}`,
          },
        ]),
    {
      says: `Apply the RBAC manifest of the release that runs${role ? `, to ${describeRef(role.ref)}` : ''}. It must grant: ${[...new Set(denials.map(inWords))].join('; ')}. Grant no more than the manifest lists.`,
    },
    { says: 'Then wait for the next attempt, five minutes at the most: what waits goes on by itself.' },
  ];
}

function inWords({ verb, resource, group, namespace }: Denial): string {
  return `${verb} ${resource}${group === '' ? '' : `.${group}`}${namespace === null ? '' : ` in namespace ${namespace}`}`;
}

function rightsOf({ rights }: Facts): string {
  return rights.length > 3 ? `${rights.slice(0, 3).join(', ')} and ${rights.length - 3} more` : rights.join(', ');
}
