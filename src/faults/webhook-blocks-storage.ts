import { sufferers } from '../domain/attachment.ts';
import { shellWord, waitByHand, withCount } from '../domain/claim.ts';
import type { Cluster } from '../domain/cluster.ts';
import { defineFault, type Evidence, type FindingDraft, fact, type ManualStep } from '../domain/fault.ts';
import type { ObjectMeta, Pod } from '../domain/objects.ts';
import { describeRef, type Ref, uniqueRefs } from '../domain/ref.ts';
import type { Scope } from '../domain/scope.ts';
import { duration, minutes } from '../domain/time.ts';
import { type Blocked, behindService, blockedByWebhooks } from '../domain/webhook.ts';

interface Facts {
  readonly webhook: string;
  readonly configuration: string;
  readonly service: string;
  readonly workload: string | undefined;
  readonly waiting: readonly string[];
  readonly longest: string;
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
        ? `Webhook ${f.webhook} could not be called; ${f.waiting[0] ?? 'storage'} has waited for ${f.longest} only.`
        : `Webhook ${f.webhook} cannot be called, as nothing behind ${f.service} is ready; ${f.waiting.length === 1 ? (f.waiting[0] ?? '') : `${f.waiting.length} objects`} cannot go on.`,
    explanation: (f) => {
      if (f.isProgress) return 'What stands behind it may just be restarting. Nothing needs to be done yet.';
      const behind =
        f.workload === undefined
          ? `What should answer behind ${f.service} could not be seen.`
          : `${f.workload} should answer, and has nothing ready.`;
      return `Its failure policy is Fail, so the API server refuses every write that the webhook must see. ${behind} The time-out that a pod's event shows is only the effect.`;
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
      fact(
        hook.configuration,
        `webhooks[${hook.webhook}].failurePolicy`,
        'Fail',
        `must answer through Service ${hook.service.namespace}/${hook.service.name}`,
      ),
      {
        object: ref,
        path: 'endpoints',
        value: '0 ready',
        says: service
          ? 'no EndpointSlice of the Service has a ready endpoint'
          : 'the Service was not read or does not exist, and no EndpointSlice of it has a ready endpoint',
      },
      ...workloads.flatMap((one) =>
        one.workload
          ? [
              fact(
                one.workload,
                'status',
                `${one.workload.readyReplicas} of ${one.workload.replicas} ready`,
                'the Service selects its pods',
              ),
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
  const texts = blocked.map(({ complaint }) =>
    fact(
      complaint.source,
      complaint.path,
      complaint.message,
      `${describeRef(complaint.object.ref)} has waited ${duration(complaint.waitedMs)}`,
    ),
  );
  return withCount(blocked[0].complaint.object, 'errors', texts, 'errors name it');
}

function manualFor(service: Blocked['hook']['service'], workload: Ref | undefined): readonly ManualStep[] {
  const namespace = shellWord(service.namespace);
  const target = workload && `${workload.kind.toLowerCase()}/${shellWord(workload.name)} -n ${namespace}`;
  return [
    {
      says: 'Look which endpoints stand behind the webhook.',
      command: `kubectl get endpointslices -n ${shellWord(namespace)} -l kubernetes.io/service-name=${shellWord(service.name)}`,
    },
    ...(target
      ? [{ says: 'Look why its pods are not Ready, and mend that.', command: `kubectl describe ${target}` }]
      : [{ says: 'Find the workload whose pods the Service selects, look why none is Ready, and mend that.' }]),
    { says: 'Leave the webhook as it is: when it answers again, the writes are repeated by themselves.' },
  ];
}
