import { sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { ObjectMeta, Pod } from '../domain/objects.ts';
import { describeRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { count, duration, en, nouns, sentences, type Text, type Word, zh } from '../domain/text.ts';
import { minutes } from '../domain/time.ts';
import { type Blocked, behindService, blockedByWebhooks } from '../domain/webhook.ts';

interface Facts {
  readonly webhook: string;
  readonly configuration: string;
  readonly service: string;
  readonly workload: string | undefined;
  readonly waiting: readonly string[];
  readonly longest: Text;
  readonly isProgress: boolean;
}

const SETTLES_WITHIN_MS = minutes(2);

/**
 * An admission webhook that must answer (`failurePolicy: Fail`) has nothing ready behind its Service, so the API server
 * refuses the writes that storage needs (F12, F19).
 */
export const webhookBlocksStorage = defineFault<'webhook-blocks-storage', Facts>({
  id: 'webhook-blocks-storage',
  severity: 'critical',
  rank: 2,
  needs: [
    'volumeattachments',
    'persistentvolumeclaims',
    'mutatingwebhookconfigurations',
    'validatingwebhookconfigurations',
    'endpointslices',
  ],
  uses: [
    'services',
    'deployments',
    'statefulsets',
    'daemonsets',
    'pods',
    'events',
    'persistentvolumes',
    'volumesnapshots',
  ],
  words: {
    summary: (f) =>
      f.isProgress
        ? {
            en: en`Webhook ${f.webhook} could not be called; ${f.waiting[0] ?? 'storage'} has waited for ${f.longest} only.`,
            zh: zh`无法调用准入 Webhook ${f.webhook}；${f.waiting[0]} 目前只等待了 ${f.longest}。`,
          }
        : {
            en: en`Webhook ${f.webhook} cannot be called, as nothing behind ${f.service} is ready; ${stopped(f)} cannot go on.`,
            zh: zh`无法调用准入 Webhook ${f.webhook}，因为 ${f.service} 背后没有任何就绪的端点；无法继续的是 ${stopped(f)}。`,
          },
    explanation: (f) => {
      if (f.isProgress)
        return {
          en: 'What stands behind it may just be restarting. Nothing needs to be done yet.',
          zh: '它背后的工作负载可能只是在重启。目前不需要做任何事。',
        };
      return sentences(
        {
          en: 'Its failure policy is Fail, so the API server refuses every write that the webhook must see.',
          zh: '它的 failurePolicy 为 Fail，因此凡是必须经过该 Webhook 的写入，API 服务器都会拒绝。',
        },
        f.workload === undefined
          ? {
              en: en`What should answer behind ${f.service} could not be seen.`,
              zh: zh`看不到 ${f.service} 背后应当应答的工作负载。`,
            }
          : {
              en: en`${f.workload} should answer, and has nothing ready.`,
              zh: zh`应由 ${f.workload} 应答，但它没有任何就绪的 Pod。`,
            },
        {
          en: "The time-out that a pod's event shows is only the effect.",
          zh: 'Pod 的事件中显示的超时只是后果。',
        },
      );
    },
  },
  doc: {
    meaning:
      'The error of an attachment or a claim says that an admission webhook could not be called. The webhook has `failurePolicy: Fail`, and its Service has no ready endpoint.',
    impact:
      'Every write that the webhook watches is refused: volumes are not attached, detached or made until what stands behind it is ready again.',
    diagnosis:
      'Read the error of the VolumeAttachment or the claim, not the time-out in the events of the pod. Look the webhook up by its name in both kinds of webhook configurations, then its Service, its EndpointSlices, and the workload whose pods the Service selects. A webhook that answered and refused does its work, and is another trouble.',
    mitigation:
      'Bring the workload behind the Service back; the writes are repeated by themselves. The common advice, to delete the webhook configuration or to set it to Ignore, lets objects in unchecked that the storage system relies on, and its operator often puts it back at once.',
  },
  prevention: {
    en: 'Run admission webhooks with more than one replica, leave storage objects and `kube-system` out of their rules where they are not needed, and alert when their Service has no ready endpoint.',
    zh: '以多个副本运行准入 Webhook，在不需要时把存储对象和 `kube-system` 排除在其规则之外，并在其 Service 没有就绪端点时告警。',
  },

  *detect(cluster: Cluster, scope: Scope): Iterable<FindingDraft<Facts>> {
    const groups = Map.groupBy(
      blockedByWebhooks(cluster, scope),
      ({ hook }) => `${hook.service.namespace}\n${hook.service.name}`,
    );
    for (const blocked of groups.values()) {
      const [first] = blocked;
      if (first) yield toFinding([first, ...blocked.slice(1)], cluster);
    }
  },
});

function stopped({ waiting }: Facts): Word {
  const [first] = waiting;
  return first !== undefined && waiting.length === 1 ? first : count(waiting.length, nouns.object);
}

function toFinding(blocked: readonly [Blocked, ...Blocked[]], cluster: Cluster): FindingDraft<Facts> {
  const [{ hook }] = blocked;
  const { service, ref, workloads } = behindService(hook.service, cluster);
  const longest = Math.max(...blocked.map(({ complaint }) => complaint.waitedMs));
  const isProgress = longest <= SETTLES_WITHIN_MS;
  const configurations = uniqueRefs(blocked.map((one) => one.hook.configuration.ref));
  const waiting = uniqueRefs(blocked.map(({ complaint }) => complaint.object.ref));
  const [workload] = workloads;
  return {
    subject: hook.configuration.ref,
    involved: [...configurations, ...workloads.map((one) => one.ref), ref, ...waiting],
    affected: affectedBy(blocked, cluster),
    facts: {
      webhook: hook.webhook,
      configuration: describeRef(hook.configuration.ref),
      service: `Service ${hook.service.namespace}/${hook.service.name}`,
      workload: workload && describeRef(workload.ref),
      waiting: waiting.map(describeRef),
      longest: duration(longest),
      isProgress,
    },
    evidence: [
      ...evidenceOfErrors(blocked),
      fact(hook.configuration, `webhooks[${hook.webhook}].failurePolicy`, 'Fail', {
        en: en`must answer through Service ${hook.service.namespace}/${hook.service.name}`,
        zh: zh`必须通过 Service ${hook.service.namespace}/${hook.service.name} 应答`,
      }),
      {
        object: ref,
        path: 'endpoints',
        value: '0 ready',
        says: service
          ? {
              en: 'no EndpointSlice of the Service has a ready endpoint',
              zh: '该 Service 的 EndpointSlice 中没有就绪的端点',
            }
          : {
              en: 'the Service was not read or does not exist, and no EndpointSlice of it has a ready endpoint',
              zh: '该 Service 未能读取或不存在，它的 EndpointSlice 中也没有就绪的端点',
            },
      },
      ...workloads.flatMap((one) =>
        one.workload
          ? [
              fact(one.workload, 'status', `${one.workload.readyReplicas} of ${one.workload.replicas} ready`, {
                en: 'the Service selects its pods',
                zh: '该 Service 选择的就是它的 Pod',
              }),
            ]
          : [],
      ),
    ],
    progressSeconds: isProgress ? Math.max(1, (SETTLES_WITHIN_MS - longest) / 1000) : undefined,
    manual: isProgress ? waitByHand : manualFor(hook.service, workload?.ref),
  };
}

function affectedBy(blocked: readonly Blocked[], cluster: Cluster): readonly Ref[] {
  const objects = blocked.map(({ complaint }) => complaint.object);
  return uniqueRefs([
    ...objects.map(({ ref }) => ref),
    ...sufferers(
      objects.flatMap((object) => podsOf(object, cluster)),
      cluster,
    ),
  ]);
}

function podsOf(object: ObjectMeta, cluster: Cluster): readonly Pod[] {
  if (object.resource === 'persistentvolumeclaims') return cluster.podsOfClaim(object);
  const attachment = object.resource === 'volumeattachments' ? cluster.findAttachment(object.name) : undefined;
  const volume = attachment?.volumeName === undefined ? undefined : cluster.findVolume(attachment.volumeName);
  if (!attachment || !volume) return [];
  return cluster.podsOfVolume(volume).filter((pod) => pod.nodeName === attachment.nodeName);
}

function evidenceOfErrors(blocked: readonly [Blocked, ...Blocked[]]): readonly Evidence[] {
  const texts = blocked.map(({ complaint }) => {
    const object = describeRef(complaint.object.ref);
    const waited = duration(complaint.waitedMs);
    return fact(complaint.source, complaint.path, complaint.message, {
      en: en`${object} has waited ${waited}`,
      zh: zh`${object} 已等待 ${waited}`,
    });
  });
  return withCount(blocked[0].complaint.object, 'errors', texts, { en: 'errors name it', zh: '提到它的错误' });
}

function manualFor(service: Blocked['hook']['service'], workload: Ref | undefined): readonly ManualStep[] {
  const namespace = shellWord(service.namespace);
  const target = workload && `${workload.kind.toLowerCase()}/${shellWord(workload.name)} -n ${namespace}`;
  return [
    {
      says: { en: 'Look which endpoints stand behind the webhook.', zh: '查看该 Webhook 背后有哪些端点。' },
      command: `kubectl get endpointslices -n ${shellWord(namespace)} -l kubernetes.io/service-name=${shellWord(service.name)}`,
    },
    ...(target
      ? [
          {
            says: {
              en: 'Look why its pods are not Ready, and mend that.',
              zh: '请查看它的 Pod 为什么未就绪，并解决问题。',
            },
            command: `kubectl describe ${target}`,
          },
        ]
      : [
          {
            says: {
              en: 'Find the workload whose pods the Service selects, look why none is Ready, and mend that.',
              zh: '请找到该 Service 所选择的 Pod 属于哪个工作负载，查看它们为什么都未就绪，并解决问题。',
            },
          },
        ]),
    {
      says: {
        en: 'Leave the webhook as it is: when it answers again, the writes are repeated by themselves.',
        zh: '不要改动该 Webhook：它恢复应答后，写入会自动重试。',
      },
    },
  ];
}
