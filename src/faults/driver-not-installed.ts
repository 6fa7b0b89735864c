import { few, silentMs, sufferers } from '../domain/attachment.ts';
import { dropFinalizerCommand, getCommand, SELECTED_NODE, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import {
  driverOfVolume,
  isAttacherFinalizer,
  isDriverInstalled,
  PROVISIONER_FINALIZER,
  servesInTree,
} from '../domain/csi.ts';
import { absent, defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Attachment, Claim, StorageClass, Volume } from '../domain/objects.ts';
import { deletingForMs, isDeleting } from '../domain/pod.ts';
import { missingRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { OfferDraft } from '../domain/remediation.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, en, named, plural, sentences, type Text, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { removeFinalizer } from '../remediations/remove-finalizer.ts';

interface Facts {
  readonly driver: string;
  readonly attachments: readonly string[];
  readonly volumes: readonly string[];
  readonly claims: readonly string[];
  readonly longest: Text;
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(5);

/** What names a driver that nobody runs, with the time since when it has waited. */
interface Orphans {
  readonly attachments: readonly Attachment[];
  readonly volumes: readonly Volume[];
  readonly claims: readonly { readonly claim: Claim; readonly class: StorageClass }[];
}

/**
 * An attachment, a volume that is given back, or the class of a claim names a CSI driver of which nothing is left: no
 * CSIDriver, no node that registered it, nobody who renews a lease for it (F14a, F02e, F19).
 */
export const driverNotInstalled = defineFault<'driver-not-installed', Facts>({
  id: 'driver-not-installed',
  severity: 'warning',
  rank: 3,
  needs: [
    'csidrivers',
    'csinodes',
    'leases',
    'volumeattachments',
    'persistentvolumes',
    'persistentvolumeclaims',
    'storageclasses',
  ],
  uses: ['deployments', 'statefulsets', 'daemonsets', 'pods'],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Driver ${f.driver} is not to be seen in this cluster; ${what(f)} ${plural(countOf(f), 'has', 'have')} waited for it for ${f.longest}.`,
            zh: zh`在这个集群中看不到驱动 ${f.driver}；${what(f)} 已等待它 ${f.longest}。`,
          }
        : {
            en: en`Driver ${f.driver} is not installed in this cluster, and ${what(f)} ${plural(countOf(f), 'waits', 'wait')} for it.`,
            zh: zh`这个集群没有安装驱动 ${f.driver}，而 ${what(f)} 正在等待它。`,
          },
    explanation: (f) =>
      f.isProgress
        ? {
            en: 'It may be being installed or upgraded just now. Nothing needs to be done yet.',
            zh: '它可能正在安装或升级。目前不需要做任何事。',
          }
        : sentences(
            {
              en: 'There is no CSIDriver of that name, no CSINode lists it, and no lease of its sidecars is renewed. So nobody attaches, detaches, provisions or deletes for it, and nobody removes its finalizers.',
              zh: '没有这个名称的 CSIDriver，没有任何 CSINode 列出它，它的边车也没有任何租约在续约。因此没有人为它挂接、解除挂接、制备或删除卷，也没有人移除它的 Finalizer。',
            },
            f.claims.length > 0 && f.attachments.length + f.volumes.length === 0
              ? {
                  en: 'Until the driver is installed, or the claim asks for another class, no volume will be made.',
                  zh: '在安装该驱动之前，或者在申领改用其他存储类之前，不会创建任何卷。',
                }
              : {
                  en: 'The volume itself may still exist, and may still be attached, in the storage backend.',
                  zh: '卷本身可能仍存在于存储后端，并且可能仍处于挂接状态。',
                },
          ),
  },
  doc: {
    meaning:
      'An object names a CSI driver that does not exist in the cluster any more, or never did: no CSIDriver object, no entry in any CSINode, no lease.',
    impact:
      'Attachments and volumes stay Terminating or Released, claims stay Pending. Volumes in the backend stay where they are, and are paid for.',
    diagnosis:
      'Compare the name letter by letter with `kubectl get csidrivers` and with the CSINodes: a healthy driver with a similar name is another driver. A missing CSIDriver object alone proves nothing; it is optional. The lease of a driver that was uninstalled stays behind and is stale.',
    mitigation:
      'Install the driver again, in the version that made the volumes: it then finishes what waits, and that is the only way that also cleans up the backend. Only when it will never come back: free the VolumeAttachment, then the volume, one finalizer at a time, after the backend was looked at. The common advice, to null all finalizers at once, leaves attached disks and paid-for volumes behind.',
  },
  prevention: {
    en: 'Uninstall a driver last: first every claim, volume, attachment and class that names it. An inventory of the objects by driver belongs in the procedure.',
    zh: '最后才卸载驱动：先处理引用它的每个申领、卷、挂接和类。流程中应包含按驱动列出对象的清单。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const [driver, orphans] of orphansByDriver(cluster, scope)) yield toFinding(driver, orphans, cluster);
  },
});

function orphansByDriver(cluster: Cluster, scope: Scope): ReadonlyMap<string, Orphans> {
  const found = new Map<
    string,
    { attachments: Attachment[]; volumes: Volume[]; claims: Orphans['claims'][number][] }
  >();
  const of = (driver: string | undefined) => {
    if (driver === undefined || driver === '' || isDriverInstalled(driver, cluster)) return undefined;
    const known = found.get(driver) ?? { attachments: [], volumes: [], claims: [] };
    found.set(driver, known);
    return known;
  };
  // What is attached and wanted goes on working without its driver.
  for (const attachment of scope.attachments)
    if (isDeleting(attachment) || !attachment.attached) of(attachment.attacher)?.attachments.push(attachment);
  for (const volume of scope.volumes)
    if (isGivenBack(volume)) of(driverOfVolume(volume, cluster))?.volumes.push(volume);
  for (const claim of scope.claims) {
    const wanted = wantedClass(claim, cluster);
    if (wanted) of(driverOfClass(wanted, claim, cluster))?.claims.push({ claim, class: wanted });
  }
  return found;
}

/** Released with Retain is kept on purpose: nobody waits for the driver. */
function isGivenBack(volume: Volume): boolean {
  if (volume.phase === 'Bound') return false;
  return isDeleting(volume) || (volume.phase === 'Released' && volume.reclaimPolicy === 'Delete');
}

/** The class of a claim that waits for a provisioner; one that waits for its first pod does not yet. */
function wantedClass(claim: Claim, cluster: Cluster): StorageClass | undefined {
  if (claim.phase !== 'Pending' || isDeleting(claim) || claim.volumeName !== undefined || !claim.className)
    return undefined;
  const found = cluster.findClass(claim.className);
  const isDelayed = found?.bindingMode === 'WaitForFirstConsumer' && claim.annotations[SELECTED_NODE] === undefined;
  return isDelayed ? undefined : found;
}

/**
 * The CSI driver that a class names. A name with a slash is no CSI driver's (CSI spec, GetPluginInfo), unless it is an
 * in-tree name whose claims Kubernetes has handed over to a driver. What has made volumes that are not CSI is none either.
 */
function driverOfClass({ provisioner }: StorageClass, claim: Claim, cluster: Cluster): string | undefined {
  const asked =
    claim.annotations['volume.kubernetes.io/storage-provisioner'] ??
    claim.annotations['volume.beta.kubernetes.io/storage-provisioner'];
  if (provisioner.includes('/')) {
    const driver = servesInTree(provisioner);
    return driver !== undefined && asked === driver ? driver : undefined;
  }
  const isOther = cluster.objects.persistentvolumes.some(
    (volume) => volume.csi === undefined && volume.annotations['pv.kubernetes.io/provisioned-by'] === provisioner,
  );
  return isOther ? undefined : provisioner;
}

function toFinding(driver: string, orphans: Orphans, cluster: Cluster): FindingDraft<Facts> {
  const { now } = cluster;
  const ages = [
    ...orphans.attachments.map((attachment) => silentMs(attachment, now)),
    ...orphans.volumes.map((volume) => givenBackMs(volume, now)),
    ...orphans.claims.map(({ claim }) => now - claim.createdAt),
  ];
  const longest = Math.max(...ages);
  const isProgress = longest <= SETTLES_WITHIN_MS;
  const { chain, affected } = refsOf(orphans, cluster);
  return {
    subject: chain[0] ?? missingRef('CSIDriver', null, driver),
    involved: [...chain, missingRef('CSIDriver', null, driver)],
    affected,
    facts: {
      driver,
      attachments: orphans.attachments.map(({ name }) => name),
      volumes: orphans.volumes.map(({ name }) => name),
      claims: orphans.claims.map(({ claim }) => `${claim.namespace ?? ''}/${claim.name}`),
      longest: duration(longest),
      isProgress,
    },
    evidence: evidenceOf(driver, orphans, cluster),
    progressSeconds: isProgress ? Math.max(1, (SETTLES_WITHIN_MS - longest) / 1000) : undefined,
    offers: offersFor(orphans, cluster),
    manual: isProgress ? waitByHand : manualFor(driver, orphans),
  };
}

function refsOf(
  { attachments, volumes, claims }: Orphans,
  cluster: Cluster,
): { readonly chain: readonly Ref[]; readonly affected: readonly Ref[] } {
  const ofAttachments = attachments.flatMap((attachment) => [
    attachment.ref,
    ...(attachment.volumeName === undefined
      ? []
      : [
          cluster.findVolume(attachment.volumeName)?.ref ?? missingRef('PersistentVolume', null, attachment.volumeName),
        ]),
  ]);
  const pods = claims.flatMap(({ claim }) => cluster.podsOfClaim(claim).filter((pod) => pod.nodeName === undefined));
  return {
    chain: uniqueRefs([
      ...ofAttachments,
      ...volumes.map((volume) => volume.ref),
      ...claims.flatMap(({ claim, class: wanted }) => [claim.ref, wanted.ref]),
    ]),
    affected: uniqueRefs([
      ...attachments.map(({ ref }) => ref),
      ...volumes.map(({ ref }) => ref),
      ...claims.map(({ claim }) => claim.ref),
      ...sufferers(pods, cluster),
    ]),
  };
}

function givenBackMs(volume: Volume, now: number): number {
  return isDeleting(volume) ? deletingForMs(volume, now) : now - (volume.phaseChangedAt ?? volume.createdAt);
}

function evidenceOf(driver: string, { attachments, volumes, claims }: Orphans, cluster: Cluster): readonly Evidence[] {
  const { now } = cluster;
  const gone = missingRef('CSIDriver', null, driver);
  const shown = [
    ...attachments.map((attachment) =>
      fact(
        attachment,
        'spec.attacher',
        attachment.attacher,
        isDeleting(attachment)
          ? {
              en: en`its detach was ordered ${duration(silentMs(attachment, now))} ago`,
              zh: zh`解除挂接的请求发出于 ${duration(silentMs(attachment, now))}前`,
            }
          : {
              en: en`made ${duration(silentMs(attachment, now))} ago, attached: ${String(attachment.attached)}`,
              zh: zh`创建于 ${duration(silentMs(attachment, now))}前，attached：${String(attachment.attached)}`,
            },
      ),
    ),
    ...volumes.map((volume) =>
      fact(
        volume,
        isDeleting(volume) ? 'metadata.finalizers' : 'status.phase',
        isDeleting(volume) ? [...volume.finalizers] : volume.phase,
        isDeleting(volume)
          ? {
              en: en`deleted ${duration(givenBackMs(volume, now))} ago`,
              zh: zh`${duration(givenBackMs(volume, now))}前已被删除`,
            }
          : {
              en: en`given back ${duration(givenBackMs(volume, now))} ago`,
              zh: zh`${duration(givenBackMs(volume, now))}前已被释放`,
            },
      ),
    ),
    ...claims.flatMap(({ claim, class: wanted }) => [
      fact(claim, 'status.phase', claim.phase, {
        en: en`has waited ${duration(now - claim.createdAt)} for a volume`,
        zh: zh`等待卷已有 ${duration(now - claim.createdAt)}`,
      }),
      fact(wanted, 'provisioner', wanted.provisioner, {
        en: 'the class that the claim names',
        zh: '申领指定的存储类',
      }),
    ]),
  ];
  return [
    absent(gone, { en: 'no CSIDriver of that name exists', zh: '不存在这个名称的 CSIDriver' }),
    {
      object: gone,
      path: 'csinodes',
      value: '0',
      says: {
        en: en`none of ${cluster.objects.csinodes.length} CSINodes lists it, and no lease of its sidecars is renewed`,
        zh: zh`${cluster.objects.csinodes.length} 个 CSINode 都没有列出它，它的边车也没有任何租约在续约`,
      },
    },
    ...withCount(attachments[0] ?? volumes[0] ?? claims[0]?.claim ?? { ref: gone }, 'waiting', shown, {
      en: 'facts',
      zh: '相关事实',
    }),
  ];
}

/** One finalizer an offer; that of a volume only when no attachment names it. */
function offersFor({ attachments, volumes }: Orphans, cluster: Cluster): readonly OfferDraft[] {
  const { now } = cluster;
  const ofAttachments = attachments
    .filter((attachment) => deletingForMs(attachment, now) > SETTLES_WITHIN_MS)
    .flatMap(({ name, uid, finalizers }) =>
      finalizers.filter(isAttacherFinalizer).map((finalizer) => draft('volumeattachments', name, uid, finalizer)),
    );
  const ofVolumes = volumes
    .filter(
      (volume) =>
        deletingForMs(volume, now) > SETTLES_WITHIN_MS && cluster.attachmentsOfVolume(volume.name).length === 0,
    )
    .flatMap(({ name, uid, finalizers }) =>
      finalizers
        .filter((finalizer) => finalizer === PROVISIONER_FINALIZER || isAttacherFinalizer(finalizer))
        .map((finalizer) => draft('persistentvolumes', name, uid, finalizer)),
    );
  return [...few(ofAttachments, 20), ...few(ofVolumes, 20)];
}

function draft(
  resource: 'volumeattachments' | 'persistentvolumes',
  name: string,
  uid: string,
  finalizer: string,
): OfferDraft {
  return removeFinalizer.offer({ resource, namespace: null, name, uid, finalizer, because: 'driver-not-installed' });
}

function manualFor(driver: string, { attachments, volumes, claims }: Orphans): readonly ManualStep[] {
  const [attachment] = attachments.filter(isDeleting);
  const [volume] = volumes.filter(isDeleting);
  return [
    {
      says: {
        en: en`Look whether ${driver} is the right name, and which drivers there are.`,
        zh: zh`请确认 ${driver} 是不是正确的名称，并查看现有哪些驱动。`,
      },
      command: 'kubectl get csidrivers,csinodes',
    },
    {
      says: {
        en: en`Install ${driver} again, in the version that was used: it then finishes what waits and cleans up the backend.`,
        zh: zh`请重新安装原来版本的 ${driver}：它会完成所有等待中的工作，并清理存储后端。`,
      },
    },
    ...(claims.length > 0
      ? [
          {
            says: {
              en: 'Or make the claim again with a class whose driver is installed. A claim never changes its class.',
              zh: '或者改用驱动已安装的存储类，重新创建该申领。已有申领的存储类无法更改。',
            },
          },
        ]
      : []),
    ...(attachment ? byHand('volumeattachment', attachment, isAttacherFinalizer) : []),
    ...(volume && attachments.length === 0
      ? byHand('pv', volume, (finalizer) => finalizer === PROVISIONER_FINALIZER || isAttacherFinalizer(finalizer))
      : []),
  ];
}

function byHand(
  word: string,
  object: Attachment | Volume,
  isOwn: (finalizer: string) => boolean,
): readonly ManualStep[] {
  const finalizer = object.finalizers.find(isOwn);
  if (finalizer === undefined) return [];
  return [
    {
      says: {
        en: en`Save ${object.name} before anything is removed from it.`,
        zh: zh`在移除 ${object.name} 的任何内容之前，请先将其保存。`,
      },
      command: getCommand(word, object),
    },
    {
      says: {
        en: 'Only if the driver will never come back, and the backend shows the volume attached to nobody (for a volume: does not know it any more): remove this one finalizer.',
        zh: '只有当该驱动永远不会再恢复，并且存储后端显示该卷没有挂接到任何机器（如果对象是卷：存储后端已不再有它）时，才移除这一个 Finalizer。',
      },
      command: dropFinalizerCommand(word, object, finalizer),
    },
  ];
}

function countOf({ attachments, volumes, claims }: Facts): number {
  return attachments.length + volumes.length + claims.length;
}

function what({ attachments, volumes, claims }: Facts): Text {
  const parts = [
    ...(attachments.length > 0 ? [named(attachments, 'attachment')] : []),
    ...(volumes.length > 0 ? [named(volumes, 'volume')] : []),
    ...(claims.length > 0 ? [named(claims, 'claim')] : []),
  ];
  return parts.reduce((all, part) => ({ en: en`${all} and ${part}`, zh: zh`${all} 以及 ${part}` }));
}
