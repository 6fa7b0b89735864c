import { few, quoted, sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Pod } from '../domain/objects.ts';
import { areRightsRead, type BoundRole, type Denial, type Refused, refusalsOf, roleToWiden } from '../domain/rbac.ts';
import { describeRef, missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { clauses, duration, en, enumerated, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';

interface Facts {
  /** Undefined when the refusal does not name the account. */
  readonly user: string | undefined;
  readonly rights: readonly Text[];
  readonly role: string | undefined;
  readonly isRoleMissing: boolean;
  readonly areRightsRead: boolean;
  readonly object: Word;
  readonly longest: Text;
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
    summary: (f) => {
      const rights = enumerated(f.rights, 3);
      const who = f.user === undefined ? { en: 'A controller', zh: '某个控制器' } : { en: f.user, zh: `${f.user} ` };
      return f.isProgress
        ? {
            en: en`${who} was refused ${rights}; that is only ${f.longest} old.`,
            zh: zh`${who}被拒绝执行 ${rights}；这是 ${f.longest}前才发生的。`,
          }
        : {
            en: en`${who} may not ${rights}, so ${f.object} does not get on.`,
            zh: zh`${who}无权执行 ${rights}，因此 ${f.object} 无法继续。`,
          };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'Roles are often applied a moment after the workload. Nothing needs to be done yet.',
          zh: '角色往往比工作负载稍晚才应用。目前不需要做任何事。',
        };
      return sentences(
        {
          en: 'The API server itself refused it, so no driver and no backend was asked, and nothing that is done to the waiting objects helps.',
          zh: '拒绝来自 API 服务器本身，因此驱动和后端都没有收到请求，对等待的对象做任何操作都没有用。',
        },
        whichRole(f),
      );
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
  prevention: {
    en: 'Upgrade the manifests of a driver together with its images, and alert on answers 403 to the accounts of storage components in the audit log of the API server.',
    zh: '将驱动的清单与其镜像一起升级，并对 API 服务器审计日志中存储组件账户收到的 403 应答设置告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const groups = Map.groupBy(refusalsOf(cluster, scope), ({ denial, complaint }) =>
      denial.user === undefined ? `${complaint.component}\n${denial.resource}` : denial.user,
    );
    for (const refused of groups.values()) yield toFinding(refused, cluster);
  },
});

function whichRole({ areRightsRead: isKnown, role, isRoleMissing }: Facts): Text {
  if (!isKnown)
    return {
      en: 'The roles could not all be read here, so which one lacks it is not known.',
      zh: '这里未能读取全部角色，因此不知道是哪个角色缺少该权限。',
    };
  if (role === undefined) return { en: 'No role is bound to that account at all.', zh: '该账户没有绑定任何角色。' };
  return isRoleMissing
    ? {
        en: en`The account is bound to ${role}, which does not exist.`,
        zh: zh`该账户绑定到 ${role}，而它并不存在。`,
      }
    : {
        en: en`No role that is bound to the account grants it; ${role} is the one that comes nearest.`,
        zh: zh`绑定到该账户的角色都没有授予该权限；最接近的是 ${role}。`,
      };
}

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
      rights: rightsIn(denials),
      role: role && describeRef(role.ref),
      isRoleMissing: role !== undefined && role.role === undefined,
      areRightsRead: denials.every((denial) => areRightsRead(denial, cluster)),
      object: waiting[0] ? describeRef(waiting[0]) : { en: 'something', zh: '某个对象' },
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
  const texts = refused.map(({ complaint }) => {
    const object = describeRef(complaint.object.ref);
    const waited = duration(complaint.waitedMs);
    return fact(complaint.source, complaint.path, complaint.message, {
      en: en`the API server's answer about ${object}, which has waited ${waited}`,
      zh: zh`API 服务器关于 ${object} 的答复，该对象已等待 ${waited}`,
    });
  });
  return [
    ...(first ? withCount(first, 'refusals', texts, { en: 'refusals', zh: '拒绝' }) : []),
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
            { en: 'bound to the account, and grants nothing of it', zh: '已绑定到该账户，但没有授予其中任何权限' },
          ),
        ]
      : []),
    ...(role && !role.role
      ? [
          {
            object: role.ref,
            path: 'metadata.name',
            value: 'not found',
            says: { en: 'a binding names this role, and it does not exist', zh: '有绑定引用这个角色，但它并不存在' },
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
  const to = role && {
    en: en`, to ${describeRef(role.ref)}`,
    zh: zh`，补全 ${describeRef(role.ref)}`,
  };
  const rights = clauses(rightsIn(denials));
  return [
    ...(first.user === undefined
      ? []
      : [
          {
            says: { en: 'Ask the API server whether it is still refused.', zh: '查询 API 服务器是否仍会拒绝。' },
            command: `kubectl auth can-i ${shellWord(first.verb)} ${shellWord(what)}${where} --as=${shellWord(first.user)}`,
          },
        ]),
    {
      says: {
        en: en`Apply the RBAC manifest of the release that runs${to}. It must grant: ${rights}. Grant no more than the manifest lists.`,
        zh: zh`请应用正在运行的发行版本的 RBAC 清单${to}。它必须授予：${rights}。不要授予清单以外的权限。`,
      },
    },
    {
      says: {
        en: 'Then wait for the next attempt, five minutes at the most: what waits goes on by itself.',
        zh: '然后等待下一次尝试，最多 5 分钟：等待的对象会自动继续。',
      },
    },
  ];
}

/** What was refused, each once. */
function rightsIn(denials: readonly Denial[]): readonly Text[] {
  return [...new Map(denials.map(inWords).map((right) => [right.en, right])).values()];
}

function inWords({ verb, resource, group, namespace }: Denial): Text {
  const right = `${verb} ${resource}${group === '' ? '' : `.${group}`}`;
  return namespace === null
    ? { en: right, zh: right }
    : { en: en`${right} in namespace ${namespace}`, zh: zh`${right}（名字空间 ${namespace}）` };
}
