import { getCommand, nameOf, patchCommand, shellWord, waitByHand } from '../domain/claim.ts';
import { type Cluster, couldNotRead } from '../domain/cluster.ts';
import { growsInodes, isSharedFileSystem, largerSizeOf, quotaReasons, whyNotExpandable } from '../domain/expansion.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { Claim, Pod, Volume } from '../domain/objects.ts';
import { isDeleting, isFinished } from '../domain/pod.ts';
import { type Resize, resizeGraceLeft, resizesOf } from '../domain/resize.ts';
import type { Scope } from '../domain/scope.ts';
import { clauses, duration, en, sentences, type Text, zh } from '../domain/text.ts';
import { type ClaimUsage, isFillingUp, isIgnored, isReadOnly, type Measure, msToFull } from '../domain/usage.ts';
import { expandClaim } from '../remediations/expand-claim.ts';

type Reason = 'bytes' | 'inodes';

interface Facts {
  readonly claim: string;
  readonly reason: Reason;
  /** The free share in words: `2.1%`. */
  readonly free: string;
  readonly isBound: boolean;
  readonly full: Text | undefined;
  readonly isSaidToFill: boolean;
  /** The size that is offered. */
  readonly to: string | undefined;
  readonly obstacles: readonly Text[];
  readonly isTemplated: boolean;
  readonly isProgress: boolean;
}

/** What is known of one claim that runs full. */
interface Filling {
  readonly claim: Claim;
  readonly volume: Volume;
  readonly users: readonly Pod[];
  readonly usage: ClaimUsage;
  readonly reason: Reason;
  readonly measure: Measure;
  readonly resize: Resize | undefined;
}

/** A mounted claim runs out of bytes or inodes (facts §9.1; thresholds of kubernetes-mixin's storage alerts). */
export const claimFillingUp = defineFault<'claim-filling-up', Facts>({
  id: 'claim-filling-up',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims', 'persistentvolumes', 'pods'],
  uses: ['storageclasses', 'resourcequotas', 'events', 'deployments', 'statefulsets', 'daemonsets', 'leases'],
  onlyWith: (cluster) => cluster.usage.claims.length > 0,
  words: {
    summary: (f) => {
      const left = leftInWords(f);
      if (f.isProgress)
        return {
          en: en`Claim ${f.claim} has ${left}, and is being enlarged.`,
          zh: zh`申领 ${f.claim} ${left}，正在扩充。`,
        };
      if (f.full !== undefined)
        return {
          en: en`Claim ${f.claim} has ${left}; at the pace of the last 6 h it is full in ${f.full}.`,
          zh: zh`申领 ${f.claim} ${left}；按最近 6 小时的速度，将在 ${f.full} 后写满。`,
        };
      return f.isSaidToFill
        ? {
            en: en`Claim ${f.claim} has ${left} and is expected to be full within 4 d.`,
            zh: zh`申领 ${f.claim} ${left}，预计 4 天内写满。`,
          }
        : { en: en`Claim ${f.claim} has ${left}.`, zh: zh`申领 ${f.claim} ${left}。` };
    },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'The resize has begun only a short time ago; the volume has its new size when it is done.',
          zh: '调整大小刚开始不久；完成后卷就会达到新的大小。',
        };
      return sentences(
        f.reason === 'bytes'
          ? {
              en: 'When nothing is left, every write fails; databases then stop or go read-only, and some need more room to start again than to go on.',
              zh: '空间用尽后，每次写入都会失败；数据库随后会停止或变为只读，有些数据库重新启动所需的空间比继续运行还多。',
            }
          : {
              en: 'There is room for bytes, but when no inodes are left no new file can be made: many small files use them up.',
              zh: '字节空间还有，但 inode 用尽后就无法再创建新文件：大量小文件会耗尽 inode。',
            },
        f.to === undefined
          ? undefined
          : {
              en: en`It can be enlarged to ${f.to} while it is in use; a volume never shrinks again.`,
              zh: zh`可以在使用中将它扩充到 ${f.to}；卷之后无法再缩小。`,
            },
        f.obstacles.length === 0
          ? undefined
          : {
              en: en`It cannot simply be enlarged: ${clauses(f.obstacles)}.`,
              zh: zh`它不能直接扩充：${clauses(f.obstacles)}。`,
            },
        f.isTemplated && f.to !== undefined
          ? {
              en: 'The template of its StatefulSet keeps the old size, as it cannot be changed: claims of later replicas are made small.',
              zh: '其 StatefulSet 的模板无法更改，仍是原来的大小：之后新增副本的申领仍会是小的。',
            }
          : undefined,
      );
    },
  },
  doc: {
    meaning:
      'The file system of a bound, mounted claim has less than 3 % free, or less than 15 % and the last six hours say that it is full within four days. `bytes`: its room. `inodes`: its file entries. Known only where Prometheus (`PROMETHEUS_URL`) or an alert tells; elsewhere nothing is said about it.',
    impact:
      'None yet. When it is full, writes fail: databases stop or turn read-only, queues lose messages, and a database may need room to recover that is not there any more.',
    diagnosis:
      'See what fills it from inside a pod that uses it (`df -h`, `df -i`, `du -x`): logs, write-ahead logs that an unused replication slot keeps, old dumps. A file system that is much larger than its claim is a directory on a disk that others share; then the claim is not what limits it. Is it full on purpose, the annotation `k8s-storage-bot.dev/ignore-filling-up` on the claim keeps the bot silent.',
    mitigation:
      'Let the application free what it does not need; never remove files of a running database by hand. Enlarge the claim where its class allows it: driver and kubelet do the rest, mostly without a restart. Where it does not, its owner may set `allowVolumeExpansion` if the driver can; otherwise make a larger claim and copy the data. Volumes never shrink. The template of a StatefulSet cannot be changed; it is replaced with `kubectl delete statefulset --cascade=orphan` and a new one, when nobody is under pressure.',
  },
  prevention: {
    en: 'Alert on the pace and not only on the level, limit what logs and dumps may take, and choose classes that allow expansion.',
    zh: '不仅要对使用量，也要对增长速度告警，限制日志和转储可占用的空间，并选择允许扩充的存储类。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    for (const claim of scope.claims) {
      const filling = fillingOf(claim, cluster, scope);
      if (filling) yield toFinding(filling, cluster);
    }
  },
});

function fillingOf(claim: Claim, cluster: Cluster, scope: Scope): Filling | undefined {
  const usage = cluster.usageOf(claim);
  if (!usage || claim.phase !== 'Bound' || isDeleting(claim) || isReadOnly(claim) || isIgnored(claim)) return undefined;
  const volume = cluster.volumeOfClaim(claim);
  const users = cluster.podsOfClaim(claim).filter((pod) => pod.nodeName !== undefined && !isFinished(pod));
  const reason = (['bytes', 'inodes'] as const).find((what) => isFillingUp(usage[what]));
  const measure = reason && usage[reason];
  if (!volume || users.length === 0 || !reason || !measure || hasGrownSince(usage, claim, users, cluster))
    return undefined;
  const resize = resizesOf(cluster, scope).find((one) => one.claim === claim);
  return { claim, volume, users, usage, reason, measure, resize };
}

/** An alert ends minutes after its volume has grown: what it said before that is over. Events only take away here. */
function hasGrownSince(usage: ClaimUsage, claim: Claim, users: readonly Pod[], cluster: Cluster): boolean {
  if (usage.source !== 'alert') return false;
  return [claim.ref, ...users.map(({ ref }) => ref)]
    .flatMap((ref) => cluster.eventsOf(ref))
    .some(({ reason, lastAt }) => GROWN.has(reason) && lastAt > usage.at);
}
const GROWN: ReadonlySet<string> = new Set(['FileSystemResizeSuccessful', 'VolumeResizeSuccessful']);

/** Why the claim is not simply enlarged, the state of a resize aside. */
function obstaclesOf(
  { claim, volume, reason, usage }: Filling,
  to: string | undefined,
  cluster: Cluster,
): readonly Text[] {
  const unread = (['storageclasses', 'resourcequotas'] as const).filter((kind) => !cluster.isRead(kind));
  const obstacles: Text[] = [
    ...unread.map((kind) => couldNotRead(kind, cluster.whyUnread(kind))),
    ...whyNotExpandable(claim, cluster),
  ];
  const capacity = usage.bytes?.capacity;
  if (isSharedFileSystem(capacity, claim))
    obstacles.push({
      en: en`its file system has ${sizeInWords(capacity)} and the claim ${claim.capacity}, so others share that disk and the claim does not limit it`,
      zh: zh`它的文件系统有 ${sizeInWords(capacity)}，而申领只有 ${claim.capacity}，因此这块磁盘由多方共用，限制它的不是申领`,
    });
  if (reason === 'inodes' && !growsInodes(volume))
    obstacles.push({
      en: 'nothing says that its file system gets more inodes when it grows (ext4 and xfs do)',
      zh: '没有信息表明它的文件系统在扩大后会得到更多 inode（ext4 和 xfs 会）',
    });
  if (to === undefined) obstacles.push({ en: 'its present size cannot be read', zh: '无法读取它现有的大小' });
  else obstacles.push(...quotaReasons(claim, to, cluster));
  return obstacles;
}

function toFinding(filling: Filling, cluster: Cluster): FindingDraft<Facts> {
  const { claim, volume, users, usage, reason, measure, resize } = filling;
  const graceLeft = resize && resizeGraceLeft(resize);
  const isProgress = graceLeft !== undefined;
  const larger = largerSizeOf(claim);
  const obstacles = obstaclesOf(filling, larger, cluster);
  const to = obstacles.length === 0 && !isProgress ? larger : undefined;
  const ms = msToFull(measure);
  const storageClass = claim.className === undefined ? undefined : cluster.findClass(claim.className);
  return {
    subject: claim.ref,
    involved: [claim.ref, ...users.map(({ ref }) => ref), volume.ref, ...(storageClass ? [storageClass.ref] : [])],
    affected: users.map(({ ref }) => ref),
    // A resize that is stuck explains why it still runs full.
    restsOn: resize && !isProgress ? [claim.ref] : [],
    reason,
    facts: {
      claim: nameOf(claim),
      reason,
      free: percent(measure.free),
      isBound: measure.isBound ?? false,
      full: ms === undefined ? undefined : duration(ms),
      isSaidToFill: measure.isSaidToFill ?? false,
      to,
      obstacles: isProgress ? [] : obstacles,
      isTemplated: cluster.statefulSetsOfClaim(claim).length > 0,
      isProgress,
    },
    evidence: [
      ...measureEvidence(claim, usage),
      fact(claim, 'status.capacity.storage', claim.capacity, { en: 'what the claim has', zh: '申领现有的大小' }),
      ...(storageClass
        ? [
            fact(storageClass, 'allowVolumeExpansion', storageClass.allowExpansion, {
              en: 'whether its class allows it to grow',
              zh: '它的存储类是否允许扩充',
            }),
          ]
        : []),
    ],
    progressSeconds: graceLeft === undefined ? undefined : graceLeft / 1000,
    offers:
      to === undefined
        ? []
        : [expandClaim.offer({ namespace: claim.namespace ?? '', name: claim.name, uid: claim.uid, to })],
    manual: isProgress ? waitByHand : manualFor(filling, to, cluster),
  };
}

/** `2.1% of its bytes free`, or what an alert's threshold says. */
function leftInWords({ reason, free, isBound }: Facts): Text {
  if (reason === 'bytes')
    return isBound
      ? { en: en`less than ${free} free`, zh: zh`剩余空间不到 ${free}` }
      : { en: en`${free} free`, zh: zh`剩余空间为 ${free}` };
  return isBound
    ? { en: en`less than ${free} of its inodes free`, zh: zh`剩余 inode 不到 ${free}` }
    : { en: en`${free} of its inodes free`, zh: zh`剩余 inode 为 ${free}` };
}

function measureEvidence(claim: Claim, usage: ClaimUsage): readonly Evidence[] {
  const when = new Date(usage.at).toISOString();
  const bySource: Readonly<Record<ClaimUsage['source'], Text>> = {
    prometheus: { en: en`as kubelet measured it at ${when}`, zh: zh`kubelet 在 ${when} 的测量值` },
    alert: { en: en`as the alert that began at ${when} says`, zh: zh`始于 ${when} 的告警所述` },
  };
  return (['bytes', 'inodes'] as const).flatMap((what) => {
    const measure = usage[what];
    if (!measure) return [];
    const { free, capacity, isBound } = measure;
    const share = `${isBound === true ? '< ' : ''}${percent(free)}`;
    const value =
      capacity === undefined
        ? share
        : `${share} (${what === 'bytes' ? `${sizeInWords(free * capacity)} of ${sizeInWords(capacity)}` : `${Math.round(free * capacity)} of ${Math.round(capacity)}`})`;
    return [fact(claim, `usage.${what}.free`, value, bySource[usage.source])];
  });
}

function manualFor(filling: Filling, to: string | undefined, cluster: Cluster): readonly ManualStep[] {
  const { claim, users, reason, usage } = filling;
  const pod = users.find(({ phase }) => phase === 'Running') ?? users[0];
  const namespace = claim.namespace ?? '';
  const steps: ManualStep[] = [
    {
      says:
        reason === 'bytes'
          ? {
              en: en`See what fills it: run \`df -h\` and \`du -x\` inside pod ${pod?.name}, and ask its owner what may go (logs, old dumps). Never remove files of a running database by hand.`,
              zh: zh`查看是什么占用了空间：在 Pod ${pod?.name} 中运行 \`df -h\` 和 \`du -x\`，并询问其负责人哪些可以清理（日志、旧的转储）。绝不要手动删除运行中数据库的文件。`,
            }
          : {
              en: en`See what uses the inodes up: run \`df -i\` inside pod ${pod?.name}, look for directories with very many small files, and ask its owner what may go.`,
              zh: zh`查看是什么耗尽了 inode：在 Pod ${pod?.name} 中运行 \`df -i\`，查找含有大量小文件的目录，并询问其负责人哪些可以清理。`,
            },
    },
  ];
  if (to !== undefined) {
    steps.push({
      says: {
        en: en`Enlarge the claim to ${to}: half as large again, in whole Gi. A volume never shrinks again.`,
        zh: zh`将申领扩充到 ${to}：增加一半，取整数 Gi。卷之后无法再缩小。`,
      },
      command: patchCommand('pvc', claim, [
        { op: 'test', path: '/metadata/uid', value: claim.uid },
        { op: 'test', path: '/spec/resources/requests/storage', value: claim.requested ?? '' },
        { op: 'replace', path: '/spec/resources/requests/storage', value: to },
      ]),
    });
    return steps;
  }
  if (filling.resize)
    return [
      ...steps,
      {
        says: {
          en: 'See how far the resize that was asked for has come; nothing more is asked for before it is done.',
          zh: '查看已请求的调整大小的进度；在它完成之前不再提出新的请求。',
        },
        command: getCommand('pvc', claim),
      },
    ];
  if (isSharedFileSystem(usage.bytes?.capacity, claim))
    return [
      ...steps,
      {
        says: {
          en: 'Free or enlarge the disk behind it: others that share it run full with it.',
          zh: '请清理或扩大它背后的磁盘：共用这块磁盘的其他使用者也会一同写满。',
        },
      },
    ];
  if (isBeyondQuota(claim, cluster))
    steps.push({
      says: {
        en: en`Ask the owner of namespace ${namespace} for a larger quota; then the claim can be enlarged.`,
        zh: zh`请向名字空间 ${namespace} 的负责人申请更大的配额；之后即可扩充申领。`,
      },
      command: `kubectl get resourcequota -n ${shellWord(namespace)}`,
    });
  const storageClass = claim.className ? cluster.findClass(claim.className) : undefined;
  if (storageClass && !storageClass.allowExpansion)
    steps.push({
      says: {
        en: en`Ask the owner of storage class ${storageClass.name} whether its driver can enlarge volumes; if so, \`allowVolumeExpansion: true\` may be set on the class, and this claim can grow.`,
        zh: zh`请询问存储类 ${storageClass.name} 的负责人其驱动能否扩大卷；如果可以，可在该存储类上设置 \`allowVolumeExpansion: true\`，之后这个申领就可以扩充。`,
      },
      command: getCommand('storageclass', storageClass),
    });
  if (claim.className && !storageClass && cluster.isRead('storageclasses'))
    steps.push({
      says: {
        en: en`Make storage class ${claim.className} again from its manifest, with \`allowVolumeExpansion: true\` if its driver can; then this claim can grow.`,
        zh: zh`请用其清单重新创建存储类 ${claim.className}，如果驱动支持，请设置 \`allowVolumeExpansion: true\`；之后这个申领就可以扩充。`,
      },
    });
  steps.push(
    {
      says: {
        en: 'Otherwise move to a larger volume. First keep the data: set the reclaim policy of the volume to `Retain` and take a snapshot or a backup.',
        zh: '否则请迁移到更大的卷。首先保留数据：将卷的回收策略设为 `Retain`，并创建快照或备份。',
      },
    },
    {
      says: {
        en: 'In an agreed window stop the workload, make a second, larger claim of a class that allows expansion, and copy the data with a pod that mounts both.',
        zh: '在商定的时间窗口内停止工作负载，用允许扩充的存储类创建第二个更大的申领，并用一个同时挂载两者的 Pod 复制数据。',
      },
    },
    {
      says: {
        en: 'Point the workload to the new claim, check it, and keep the old claim until nobody can miss it.',
        zh: '让工作负载使用新的申领并检查无误，旧的申领请保留到确定不再需要为止。',
      },
    },
  );
  return steps;
}

function isBeyondQuota(claim: Claim, cluster: Cluster): boolean {
  const to = largerSizeOf(claim);
  return to !== undefined && quotaReasons(claim, to, cluster).length > 0;
}

/** `12%`, `2.1%`, `0.04%`: two digits that say something. */
function percent(share: number): string {
  return `${Number((share * 100).toPrecision(2))}%`;
}

/** `1.2Gi`: binary units, as claims have them. */
function sizeInWords(bytes: number | undefined): string {
  const units = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];
  let [value, unit] = [bytes ?? 0, 0];
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${Number(value.toPrecision(3))}${units[unit]}`;
}
