/** Admission webhooks that must answer and cannot: which one an error names, and what should stand behind it. */
import type { Cluster } from './cluster.ts';
import { type Complaint, complaintsOf } from './complaint.ts';
import type { Service, WebhookConfiguration, Workload } from './objects.ts';
import { missingRef, type Ref, uniqueRefs } from './ref.ts';
import type { Scope } from './scope.ts';

/** A webhook whose failure refuses the request, and behind which nothing is ready. */
export interface BlockedWebhook {
  readonly configuration: WebhookConfiguration;
  readonly webhook: string;
  readonly service: { readonly namespace: string; readonly name: string };
}

/** A text of a webhook that could not be called; one that answered with a refusal did its work. */
const CALL_FAILED = /failed (?:to call|calling) (?:admission )?webhook "([^"]+)"/;

/** The webhook that an error says could not be called. */
export function webhookIn(message: string): string | undefined {
  return CALL_FAILED.exec(message)?.[1];
}

/** Blocked webhooks of that name: configurations of both kinds may hold one. */
export function blockedWebhooks(name: string, cluster: Cluster): readonly BlockedWebhook[] {
  const { mutatingwebhookconfigurations, validatingwebhookconfigurations } = cluster.objects;
  return [...mutatingwebhookconfigurations, ...validatingwebhookconfigurations].flatMap((configuration) =>
    configuration.webhooks.flatMap((webhook) => {
      const { service } = webhook;
      const isBlocked =
        webhook.name === name &&
        webhook.failurePolicy !== 'Ignore' &&
        service !== undefined &&
        !hasReadyEndpoint(service, cluster);
      return isBlocked ? [{ configuration, webhook: name, service }] : [];
    }),
  );
}

function hasReadyEndpoint(service: BlockedWebhook['service'], cluster: Cluster): boolean {
  return cluster.objects.endpointslices.some(
    (slice) =>
      slice.namespace === service.namespace &&
      slice.serviceName === service.name &&
      slice.endpoints.some((endpoint) => endpoint.ready),
  );
}

export interface Blocked {
  readonly complaint: Complaint;
  readonly hook: BlockedWebhook;
}

/** Everything of a scope that waits because of a webhook that cannot be called. */
export function blockedByWebhooks(cluster: Cluster, scope: Scope): readonly Blocked[] {
  return complaintsOf(cluster, scope).flatMap((complaint) => {
    const name = webhookIn(complaint.message);
    return name === undefined ? [] : blockedWebhooks(name, cluster).map((hook) => ({ complaint, hook }));
  });
}

/** What a Service stands for: its workloads, by selector or by the pods that it selects. */
export function behindService(
  wanted: { readonly namespace: string; readonly name: string },
  cluster: Cluster,
): { readonly service: Service | undefined; readonly ref: Ref; readonly workloads: readonly WorkloadSeen[] } {
  const service = cluster.objects.services.find(
    ({ namespace, name }) => namespace === wanted.namespace && name === wanted.name,
  );
  const ref = service?.ref ?? missingRef('Service', wanted.namespace, wanted.name);
  const selector = Object.entries(service?.selector ?? {});
  if (selector.length === 0) return { service, ref, workloads: [] };
  const selects = (labels: Readonly<Record<string, string>>) => selector.every(([key, value]) => labels[key] === value);
  const { deployments, statefulsets, daemonsets, pods } = cluster.objects;
  const own = [...deployments, ...statefulsets, ...daemonsets].filter(
    (workload) => workload.namespace === wanted.namespace && selects(workload.selector),
  );
  if (own.length > 0) return { service, ref, workloads: own.map((workload) => ({ ref: workload.ref, workload })) };
  const above = pods
    .filter((pod) => pod.namespace === wanted.namespace && selects(pod.labels))
    .flatMap((pod) => cluster.workloadOf(pod) ?? []);
  return { service, ref, workloads: uniqueRefs(above).map((found) => ({ ref: found, workload: undefined })) };
}

export interface WorkloadSeen {
  readonly ref: Ref;
  /** Undefined when only its pods were read. */
  readonly workload: Workload | undefined;
}
