import { asSentence } from '../domain/attachment.ts';
import { isDelayed, sufferersOf } from '../domain/binding.ts';
import { FRESH_MS, getCommand, groupsOf, nameOf, SELECTED_NODE, shellWord, waitByHand } from '../domain/claim.ts';
import { type Cluster, controllerOf } from '../domain/cluster.ts';
import { sidecarsOfDriver } from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import {
  type Failure,
  failureOf,
  isGhostOfKey,
  keyParameterOf,
  type ProvisioningReason,
  secretOf,
} from '../domain/provisioning.ts';
import { refusalsOf } from '../domain/rbac.ts';
import type { Ref } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { recreatePendingClaim } from '../remediations/recreate-pending-claim.ts';

interface Facts {
  readonly claims: readonly string[];
  readonly className: Word;
  readonly provisioner: string;
  readonly reason: ProvisioningReason;
  readonly waitedFor: Text;
  readonly error: string | undefined;
  readonly hasAfterEffect: boolean;
  readonly secret: string | undefined;
  readonly source: string | undefined;
  readonly requested: Word;
  readonly needed: string | undefined;
  readonly mode: string;
  readonly sourceMode: 'Block' | 'Filesystem' | undefined;
  /** The class's parameter with an encryption key, when the volume vanished right after it was made. */
  readonly ghostKey: string | undefined;
  readonly isProgress: boolean;
}

const SILENCE_MS = minutes(5);

/**
 * A provisioner was asked for a volume and does not make it. It tries again for ever; the first error of the series
 * explains, later ones often only say that the first request is still there (F19).
 */
export const claimProvisioningFailed = defineFault<'claim-provisioning-failed', Facts>({
  id: 'claim-provisioning-failed',
  severity: 'warning',
  rank: 7,
  needs: [
    'persistentvolumeclaims',
    'persistentvolumes',
    'storageclasses',
    'nodes',
    'pods',
    'csidrivers',
    'csinodes',
    'leases',
    'deployments',
    'statefulsets',
  ],
  uses: [
    'events',
    'volumesnapshots',
    'volumesnapshotcontents',
    'daemonsets',
    'clusterroles',
    'clusterrolebindings',
    'roles',
    'rolebindings',
  ],
  words: {
    summary: (f) => {
      if (f.isProgress)
        return {
          en: en`The volume of ${named(f.claims, 'claim')} is being made by ${f.provisioner}.`,
          zh: zh`${f.provisioner} 正在为${named(f.claims, 'claim')} 制备卷。`,
        };
      if (f.reason === 'source-size') {
        const needed: Word = f.needed ?? { en: 'the size', zh: '大小' };
        return {
          en: en`${named(f.claims, 'Claim')} asks for ${f.requested}, less than ${needed} of its source ${f.source}.`,
          zh: zh`${named(f.claims, 'Claim')} 请求 ${f.requested}，小于其来源 ${f.source} 的 ${needed}。`,
        };
      }
      if (f.reason === 'volume-mode') {
        const mode: Word = f.sourceMode ?? { en: 'of the other mode', zh: '另一种模式' };
        return {
          en: en`${named(f.claims, 'Claim')} asks for volume mode ${f.mode}, and its source ${f.source} is ${mode}.`,
          zh: zh`${named(f.claims, 'Claim')} 请求的卷模式是 ${f.mode}，而其来源 ${f.source} 是 ${mode}。`,
        };
      }
      return {
        en: en`${f.provisioner} does not make the volume of ${named(f.claims, 'claim')} (class ${f.className}): ${because[f.reason]}.`,
        zh: zh`${f.provisioner} 没有为${named(f.claims, 'claim')}（存储类：${f.className}）制备卷：${because[f.reason]}。`,
      };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: en`Asked for ${f.waitedFor} ago, and nothing speaks against it yet.`,
          zh: zh`请求发出于 ${f.waitedFor}前，目前还没有异常迹象。`,
        };
      return sentences(
        { en: en`Pending for ${f.waitedFor}.`, zh: zh`处于 Pending 已有 ${f.waitedFor}。` },
        f.error === undefined
          ? undefined
          : { en: en`The first error was: ${asSentence(f.error)}`, zh: zh`第一个错误是：“${f.error}”。` },
        f.hasAfterEffect
          ? {
              en: 'Later errors about a request that exists already, or with other parameters, only follow from that one.',
              zh: '之后关于请求已存在或参数不同的错误，都只是它的后果。',
            }
          : undefined,
        f.ghostKey === undefined
          ? undefined
          : {
              en: en`The volume was gone right after it was made, and the class uses a key of its own (${f.ghostKey}): most likely the driver's role may not use that key. Nobody deleted a disk.`,
              zh: zh`卷在创建后立即消失，而存储类使用了自己的密钥（${f.ghostKey}）：很可能是驱动的角色无权使用该密钥。没有人删除过磁盘。`,
            },
        f.secret === undefined
          ? undefined
          : { en: en`The class names the Secret ${f.secret}.`, zh: zh`存储类指定了 Secret ${f.secret}。` },
        means[f.reason],
      );
    },
  },
  doc: {
    meaning:
      'The claim is Pending, its provisioner was asked (`volume.kubernetes.io/storage-provisioner`, and with WaitForFirstConsumer a node was selected), and no volume was made.',
    impact: 'Pods that need the claim do not start. There is no volume yet, so no data is at risk.',
    diagnosis:
      'Read the `ProvisioningFailed` events of the claim from the first one on: `operation already exists` and `parameters are inconsistent` are only what follows. `not authorized` or 403 from the backend is about the cloud role of the driver, not about Kubernetes RBAC. `verify that the provisioner is running` is printed for every claim that waits and says nothing. Without any event the reason is not known: events live for an hour.',
    mitigation:
      'Remove the cause; the provisioner tries again by itself, after `InvalidArgument` only after a while. Make the claim again only where its own fields are wrong: below the size of its source, or in another volume mode. A CreateVolume call that is still under way leaves a volume behind when its claim is deleted. Restarting the controller, the common advice, changes none of these reasons.',
  },
  prevention: {
    en: 'Alert on claims that stay Pending and on `ProvisioningFailed`, watch quota and credentials of the backend, and make a small claim of every class after each change of the driver.',
    zh: '对一直处于 Pending 的申领和 `ProvisioningFailed` 设置告警，监控后端的配额和凭据，并在每次变更驱动之后用每个存储类各创建一个小申领。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const asked = scope.claims.flatMap((claim) => failureOf(claim, cluster) ?? []);
    if (asked.length === 0) return;
    const refused = new Set(refusalsOf(cluster, scope).map(({ complaint }) => complaint.object.uid));
    const failures = asked.filter(({ claim }) => !refused.has(claim.uid));
    for (const group of groupsOf(failures, keyOf)) yield toFinding(group, cluster);
  },
});

const because: Readonly<Record<ProvisioningReason, Text>> = {
  quota: { en: 'a limit of the storage backend or the provider is reached', zh: '已达到存储后端或提供商的限额' },
  permission: { en: 'the backend does not allow the driver to do it', zh: '存储后端不允许驱动这样做' },
  secret: { en: 'a Secret that the class names is missing or unusable', zh: '存储类指定的 Secret 缺失或不可用' },
  parameters: { en: 'the backend or the driver refuses what was asked for', zh: '存储后端或驱动拒绝所请求的内容' },
  'source-size': { en: 'the claim is smaller than its source', zh: '申领比它的来源小' },
  'volume-mode': { en: 'the volume mode is not that of its source', zh: '卷模式与来源不一致' },
  topology: {
    en: 'no volume can be made for the node or zone that was asked for',
    zh: '无法为所请求的节点或可用区制备卷',
  },
  backend: { en: 'the backend failed', zh: '存储后端出错' },
  'no-answer': { en: 'no answer comes', zh: '没有答复' },
  unknown: { en: 'the reason is not known any more', zh: '原因已无从得知' },
};

const means: Readonly<Record<ProvisioningReason, Text>> = {
  quota: {
    en: 'When there is room again, or the limit is raised, the provisioner makes the volume by itself.',
    zh: '腾出空间或提高限额之后，制备器会自行制备卷。',
  },
  permission: {
    en: "This is the backend's own right (a cloud role, an account, a key policy), not a Kubernetes role; no RBAC change helps.",
    zh: '这是存储后端自身的权限（云角色、账号、密钥策略），而不是 Kubernetes 的角色；修改 RBAC 没有用。',
  },
  secret: {
    en: 'Once the Secret is right, the provisioner goes on by itself.',
    zh: 'Secret 改正之后，制备器会自行继续。',
  },
  parameters: {
    en: 'It tries again for ever with the same request, so it fails until class or claim ask for something else.',
    zh: '它会一直用同样的请求重试，因此在存储类或申领改变请求内容之前都会失败。',
  },
  'source-size': {
    en: 'A volume cannot be smaller than what it is made from. The source is all right.',
    zh: '卷不能比它的来源小。来源本身没有问题。',
  },
  'volume-mode': {
    en: 'The content would be read in another way than it was written, which its owner must allow first.',
    zh: '读取内容的方式将与写入时不同，必须先得到其负责人的许可。',
  },
  topology: {
    en: 'The place was chosen by the scheduler or by the class; compare it with where the driver runs.',
    zh: '位置由调度器或存储类选定；请与驱动运行的位置进行比较。',
  },
  backend: {
    en: 'The provisioner tries again by itself; look at the storage backend and at the log of the driver.',
    zh: '制备器会自行重试；请检查存储后端和驱动的日志。',
  },
  'no-answer': {
    en: 'The driver is installed and no answer arrives: the backend is slow or out of reach. A volume may still be in the making.',
    zh: '驱动已安装，但没有答复：存储后端很慢或无法访问。卷可能仍在创建中。',
  },
  unknown: {
    en: 'Events live for an hour only; the log of the csi-provisioner has the errors.',
    zh: '事件只保留一小时；错误要看 csi-provisioner 的日志。',
  },
};

/** What differs from claim to claim stands alone; else claims of one class that fail for one reason are one trouble. */
function keyOf(failure: Failure): string {
  const { claim, reason, provisioner, error } = failure;
  const isOwn = reason === 'source-size' || reason === 'volume-mode' || reason === 'unknown';
  const text = reason === 'parameters' ? plainOf(error?.message ?? '') : '';
  const secret = reason === 'secret' ? (secretOf(failure)?.name ?? '') : '';
  return JSON.stringify([
    provisioner,
    claim.className ?? '',
    reason,
    leftMs(failure) !== undefined,
    isOwn ? claim.uid : '',
    text,
    secret,
  ]);
}

/** A text without the names and numbers in it. */
function plainOf(message: string): string {
  return message.replaceAll(/"[^"]*"|'[^']*'|[0-9a-f-]{8,}|\d+/g, '_');
}

/** How much time it still has; undefined when that is over. */
function leftMs({ askedMs, error }: Failure): number | undefined {
  const left = (error ? FRESH_MS : SILENCE_MS) - askedMs;
  return left >= 0 ? left : undefined;
}

function toFinding(group: readonly [Failure, ...Failure[]], cluster: Cluster): FindingDraft<Facts> {
  const [failure] = group;
  const { claim, reason, source, error } = failure;
  const claims = group.map((one) => one.claim);
  const left = group.map(leftMs).reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.min(a, b)));
  const secret = reason === 'secret' ? secretOf(failure) : undefined;
  const needsSource = reason === 'source-size' || reason === 'volume-mode';
  const parameters = failure.class?.parameters ?? {};
  return {
    subject: claim.ref,
    involved: [
      claim.ref,
      ...(failure.class ? [failure.class.ref] : []),
      ...(secret ? [secret] : []),
      ...(source ? [source] : []),
      ...claims.map((one) => one.ref),
    ],
    affected: sufferersOf(claims, cluster),
    restsOn: [...claims.map((one) => one.ref), ...(source ? [source] : [])],
    ...(left === undefined ? { reason } : {}),
    facts: {
      claims: claims.map(nameOf),
      className: claim.className ?? { en: 'by default', zh: '默认' },
      provisioner: failure.provisioner,
      reason,
      waitedFor: duration(Math.max(...group.map((one) => one.askedMs))),
      error: needsSource ? undefined : error && shortened(error.message),
      hasAfterEffect: failure.afterEffect !== undefined,
      secret: secret && `${secret.namespace ?? ''}/${secret.name}`,
      source: source && `${source.kind} ${source.name}`,
      requested: claim.requested ?? { en: 'a size that is not said', zh: '未说明的大小' },
      needed: failure.sourceBytes === undefined ? undefined : quantityOf(failure.sourceBytes),
      mode: claim.volumeMode,
      sourceMode: failure.sourceMode,
      ghostKey: error && isGhostOfKey(error.message, parameters) ? keyParameterOf(parameters) : undefined,
      isProgress: left !== undefined,
    },
    evidence: evidenceOf(group, secret, cluster),
    progressSeconds: left === undefined ? undefined : left / 1000,
    offers: group.slice(0, 20).flatMap(offersOf),
    manual: left === undefined ? byHand(failure, secret, cluster) : waitByHand,
  };
}

function shortened(message: string): string {
  const text = message.replaceAll(/\s+/g, ' ').replace(/[.\s]+$/, '');
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
}

function evidenceOf(
  group: readonly [Failure, ...Failure[]],
  secret: Ref | undefined,
  cluster: Cluster,
): readonly Evidence[] {
  const [failure] = group;
  const { claim, error, afterEffect, sourceBytes, sourceMode, source } = failure;
  const node = claim.annotations[SELECTED_NODE];
  const sidecar = sidecarsOfDriver(failure.provisioner, 'csi-provisioner', cluster)[0];
  return [
    ...group.slice(0, 5).map((one) =>
      fact(one.claim, 'status.phase', one.claim.phase, {
        en: en`${one.provisioner} was asked ${duration(one.askedMs)} ago, and there is no volume pvc-${one.claim.uid}`,
        zh: zh`${duration(one.askedMs)}前向 ${one.provisioner} 发出了请求，但没有卷 pvc-${one.claim.uid}`,
      }),
    ),
    ...(isDelayed(claim, cluster) && node !== undefined
      ? [
          fact(claim, `metadata.annotations["${SELECTED_NODE}"]`, node, {
            en: 'a node was chosen and exists',
            zh: '已选定节点，并且该节点存在',
          }),
        ]
      : []),
    ...(error
      ? [
          fact(error, 'message', shortened(error.message), {
            en: 'the first error of the series',
            zh: '这一系列错误中的第一个',
          }),
        ]
      : []),
    ...(afterEffect
      ? [
          fact(afterEffect, 'message', shortened(afterEffect.message), {
            en: 'came later and only follows from the first',
            zh: '出现在后，只是第一个错误的后果',
          }),
        ]
      : []),
    ...(sourceBytes === undefined || !source
      ? []
      : [
          fact(claim, 'spec.resources.requests.storage', claim.requested, {
            en: en`${source.kind} ${source.name} needs ${quantityOf(sourceBytes)}`,
            zh: zh`${source.kind} ${source.name} 需要 ${quantityOf(sourceBytes)}`,
          }),
        ]),
    ...(sourceMode === undefined
      ? []
      : [
          fact(claim, 'spec.volumeMode', claim.volumeMode, {
            en: en`the source is ${sourceMode}`,
            zh: zh`来源是 ${sourceMode}`,
          }),
        ]),
    ...(source?.uid === null
      ? [
          absent(source, {
            en: 'the source that the claim is to be made from does not exist',
            zh: '该申领的来源不存在',
          }),
        ]
      : []),
    ...(failure.class
      ? [
          fact(
            failure.class,
            'parameters',
            { ...failure.class.parameters },
            { en: 'what the class asks the driver for', zh: '存储类对驱动的要求' },
          ),
        ]
      : []),
    ...(secret
      ? [
          {
            object: secret,
            path: 'metadata.name',
            value: secret.name,
            says: { en: 'the Secret that the class names; it was not read', zh: '存储类指定的 Secret；没有读取它' },
          },
        ]
      : []),
    ...(sidecar
      ? [
          fact(
            sidecar.workload,
            'status.readyReplicas',
            sidecar.workload.readyReplicas,
            sidecar.workload.readyReplicas > 0
              ? { en: 'the provisioner runs', zh: '制备器在运行' }
              : { en: 'nothing of the provisioner is ready', zh: '制备器没有就绪的副本' },
          ),
        ]
      : []),
    ...(claim.name.length > 63
      ? [
          fact(claim, 'metadata.name', claim.name, {
            en: en`${claim.name.length} characters; a label takes 63 at most`,
            zh: zh`${claim.name.length} 个字符；标签最多 63 个`,
          }),
        ]
      : []),
  ];
}

const UNITS = ['Ei', 'Pi', 'Ti', 'Gi', 'Mi', 'Ki'] as const;

/** Bytes as a quantity that loses nothing: `3Gi`, or the plain number when no unit divides it. */
function quantityOf(bytes: number): string {
  const at = UNITS.findIndex((_, i) => bytes >= 1024 ** (6 - i) && bytes % 1024 ** (6 - i) === 0);
  return at < 0 ? String(bytes) : `${bytes / 1024 ** (6 - at)}${UNITS[at] ?? ''}`;
}

/** Only what is wrong in the claim itself is put right by making it again. */
function offersOf({ claim, reason, sourceBytes, sourceMode }: Failure): readonly OfferDraft[] {
  if (controllerOf(claim)?.kind === 'Pod') return [];
  const same = {
    namespace: claim.namespace ?? '',
    name: claim.name,
    uid: claim.uid,
    storageClass: claim.className ?? null,
  };
  if (reason === 'source-size' && sourceBytes !== undefined)
    return [recreatePendingClaim.offer({ ...same, storage: quantityOf(sourceBytes) })];
  if (reason === 'volume-mode' && sourceMode !== undefined)
    return [recreatePendingClaim.offer({ ...same, volumeMode: sourceMode })];
  return [];
}

function byHand(failure: Failure, secret: Ref | undefined, cluster: Cluster): readonly ManualStep[] {
  const { claim } = failure;
  const look: ManualStep = {
    says: { en: 'Read the errors of the claim from the first one on.', zh: '请从第一个错误开始查看该申领的错误。' },
    command: `kubectl get events -n ${shellWord(claim.namespace ?? '')} --field-selector involvedObject.name=${shellWord(claim.name)} --sort-by=.firstTimestamp`,
  };
  const sidecar = sidecarsOfDriver(failure.provisioner, 'csi-provisioner', cluster)[0];
  const log: readonly ManualStep[] = sidecar
    ? [
        {
          says: {
            en: 'Look at the log of the provisioner, where errors stay longer than in events.',
            zh: '请查看制备器的日志，其中的错误比事件保留得更久。',
          },
          command: `kubectl logs -n ${shellWord(sidecar.workload.namespace ?? '')} ${sidecar.workload.ref.kind.toLowerCase()}/${shellWord(sidecar.workload.name)} -c ${shellWord(sidecar.container.name)} --since=2h`,
        },
      ]
    : [];
  return [look, ...log, ...stepsFor(failure, secret)];
}

function stepsFor({ claim, reason, class: storageClass, sourceBytes, sourceMode }: Failure, secret: Ref | undefined) {
  const size: Word =
    sourceBytes === undefined ? { en: 'the size of the source', zh: '来源的大小' } : quantityOf(sourceBytes);
  const mode: Word = sourceMode ?? { en: 'of the source', zh: '来源的模式' };
  const steps: Readonly<Record<ProvisioningReason, readonly ManualStep[]>> = {
    quota: [
      {
        says: {
          en: 'Ask for a higher limit at the provider, or free storage in the backend whose owner agrees. The provisioner then goes on by itself.',
          zh: '请向提供商申请提高限额，或在负责人同意的情况下释放存储后端的空间。之后制备器会自行继续。',
        },
      },
    ],
    permission: [
      {
        says: {
          en: "Give the driver's own account in the backend what its manual lists (cloud role, key policy); with an encrypted class that includes the use of the key and grants on it. Kubernetes roles are not concerned.",
          zh: '请按驱动手册所列，授予驱动在存储后端的账号相应权限（云角色、密钥策略）；如果存储类启用了加密，还包括使用该密钥及对其授权的权限。与 Kubernetes 的角色无关。',
        },
      },
      {
        says: {
          en: 'If the first request is kept alive by the backend after that (errors about an idempotent request), the empty claim can be made again for a fresh one.',
          zh: '如果此后存储后端仍保留着第一个请求（出现关于幂等请求的错误），可以重新创建这个空的申领，以发出新的请求。',
        },
      },
    ],
    secret: [
      secret
        ? {
            says: {
              en: 'See whether the Secret is there; its owner puts right what it holds. Never make an empty one.',
              zh: '请查看该 Secret 是否存在；其内容由负责人改正。绝不要创建空的 Secret。',
            },
            command: `kubectl get secret ${shellWord(secret.name)} -n ${shellWord(secret.namespace ?? '')}`,
          }
        : {
            says: {
              en: 'Look up which Secret the driver needs, and whether it is there. Never make an empty one.',
              zh: '请查明驱动需要哪个 Secret，以及它是否存在。绝不要创建空的 Secret。',
            },
          },
    ],
    parameters: [
      ...(storageClass
        ? [
            {
              says: {
                en: 'Compare the parameters of the class with the manual of the driver.',
                zh: '请将存储类的参数与驱动手册进行对照。',
              },
              command: getCommand('storageclass', storageClass),
            },
          ]
        : []),
      ...(claim.name.length > 63
        ? [
            {
              says: {
                en: 'The name of the claim is longer than a label may be (63), and this driver writes it into one. Use a shorter name in the template or for the StatefulSet, or a newer driver. A claim cannot be renamed.',
                zh: '申领的名称超过了标签的长度上限（63），而这个驱动会将其写入标签。请在模板中或为 StatefulSet 使用更短的名称，或者使用更新的驱动。申领无法改名。',
              },
            },
          ]
        : [
            {
              says: {
                en: 'Make a corrected class under a new name, and let the claim be written with it; or correct what the claim asks for.',
                zh: '请以新名称创建改正后的存储类，并让申领使用它；或者改正申领所请求的内容。',
              },
            },
          ]),
    ],
    'source-size': [
      {
        says: {
          en: en`Ask for at least ${size} where the claim is written, and make the claim again; it is empty. The snapshot or source claim stays as it is.`,
          zh: zh`请在定义申领的地方请求至少 ${size}，并重新创建该申领；它是空的。快照或来源申领保持不变。`,
        },
      },
    ],
    'volume-mode': [
      {
        says: {
          en: en`Ask for volume mode ${mode} where the claim is written, and make the claim again; it is empty. Another mode must be allowed on the VolumeSnapshotContent by whoever vouches for the content.`,
          zh: zh`请在定义申领的地方将卷模式设为 ${mode}，并重新创建该申领；它是空的。如需其他模式，必须由为内容负责的人在 VolumeSnapshotContent 上允许。`,
        },
      },
    ],
    topology: [
      {
        says: {
          en: 'Compare the selected node, the zones of the class (allowedTopologies) and the topology keys that the driver reports for the node.',
          zh: '请对照所选的节点、存储类的可用区（allowedTopologies），以及驱动为该节点报告的拓扑键。',
        },
        command: `kubectl get csinode ${shellWord(claim.annotations[SELECTED_NODE] ?? '')} -o yaml`.replace(
          " '' ",
          ' ',
        ),
      },
    ],
    backend: [
      {
        says: {
          en: 'Look whether the storage backend is well and can be reached from where the controller of the driver runs.',
          zh: '请检查存储后端是否正常，以及从驱动控制器运行的位置能否访问它。',
        },
      },
    ],
    'no-answer': [
      {
        says: {
          en: 'Look whether the backend can be reached and works. Do not delete the claim meanwhile: a volume that is still being made would be left behind.',
          zh: '请检查存储后端能否访问、是否正常工作。其间不要删除该申领：仍在创建中的卷会残留下来。',
        },
      },
    ],
    unknown: [
      {
        says: {
          en: 'Nothing tells the reason any more. Find it in the log before anything is changed.',
          zh: '已没有任何信息能说明原因。在做任何改动之前，请先在日志中查找。',
        },
      },
    ],
  };
  return steps[reason];
}
