import type { Clock, Log } from '../ports.ts';
import type { ClusterObject } from './slack/cluster-rows.ts';
import { objectAt, objectsAt, stringAt } from './slack/json.ts';

/** An alert of kubernetes-mixin, by its labels; kube-state-metrics would tell the same of the objects. */
interface Alert {
  readonly name: string;
  readonly severity: 'warning' | 'critical';
  readonly labels: Readonly<Record<string, string>>;
  readonly says: string;
}

/** What Prometheus and Alertmanager would do: fire for what is wrong now, and tell when it is over. */
export interface AlertSender {
  /** Sends every alert that holds now; how many there are. Throws where the bot does not take them. */
  fire(): Promise<number>;
  /** Forgets what fired: another world was loaded. */
  forget(): void;
  close(): void;
}

/** The cluster changes many objects at once; what is over is told a moment later. */
const PAUSE_MS = 500;

/** `send` carries one webhook of Alertmanager, version 4. */
export function createAlertSender(options: {
  readonly cluster: {
    snapshot(): Promise<readonly ClusterObject[]>;
    subscribe(listener: () => void): () => void;
  };
  readonly clock: Clock;
  readonly log: Log;
  send(body: unknown): Promise<void>;
}): AlertSender {
  const { cluster, clock, log } = options;
  const firing = new Map<string, { readonly alert: Alert; readonly startsAt: string }>();
  let timer: NodeJS.Timeout | undefined;

  async function endWhatIsOver(): Promise<void> {
    const holds = new Set(alertsOf(await cluster.snapshot()).map(keyOf));
    const over = [...firing].filter(([key]) => !holds.has(key));
    if (over.length === 0) return;
    const endsAt = new Date(clock.now()).toISOString();
    await options.send(webhookOf(over.map(([, one]) => written(one.alert, one.startsAt, endsAt))));
    for (const [key] of over) firing.delete(key);
  }

  function plan(): void {
    if (firing.size === 0) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      endWhatIsOver().catch((error: unknown) => {
        log.warn('the end of an alert could not be sent', { error });
        plan();
      });
    }, PAUSE_MS);
  }

  const leave = cluster.subscribe(plan);
  return {
    async fire() {
      const startsAt = new Date(clock.now()).toISOString();
      const alerts = alertsOf(await cluster.snapshot());
      if (alerts.length === 0) return 0;
      const all = alerts.map((alert) => firing.get(keyOf(alert)) ?? { alert, startsAt });
      await options.send(webhookOf(all.map((one) => written(one.alert, one.startsAt, null))));
      for (const one of all) firing.set(keyOf(one.alert), one);
      return all.length;
    },
    forget: () => firing.clear(),
    close() {
      leave();
      clearTimeout(timer);
    },
  };
}

/** The alerts that hold for these objects. */
export function alertsOf(objects: readonly ClusterObject[]): readonly Alert[] {
  return objects.flatMap((object): readonly Alert[] => {
    const { name } = object.metadata;
    const namespace = object.metadata.namespace ?? '';
    switch (object.kind) {
      case 'Node':
        return conditionOf(object, 'Ready') === 'True'
          ? []
          : [alert('KubeNodeNotReady', 'warning', { node: name }, `Node ${name} is not ready.`)];
      case 'Pod':
        return isDone(object) || conditionOf(object, 'Ready') === 'True'
          ? []
          : [alert('KubePodNotReady', 'warning', { namespace, pod: name }, `Pod ${namespace}/${name} is not ready.`)];
      case 'StatefulSet':
        return lacksReplicas(object)
          ? [
              alert(
                'KubeStatefulSetReplicasMismatch',
                'warning',
                { namespace, statefulset: name },
                `${name} lacks replicas.`,
              ),
            ]
          : [];
      case 'Deployment':
        return lacksReplicas(object)
          ? [
              alert(
                'KubeDeploymentReplicasMismatch',
                'warning',
                { namespace, deployment: name },
                `${name} lacks replicas.`,
              ),
            ]
          : [];
      default:
        return [];
    }
  });
}

function alert(name: string, severity: Alert['severity'], labels: Alert['labels'], says: string): Alert {
  return { name, severity, labels, says };
}

function keyOf({ name, labels }: Alert): string {
  return JSON.stringify([name, Object.entries(labels).toSorted()]);
}

function conditionOf(object: ClusterObject, type: string): string {
  const found = objectsAt(object.status, 'conditions').find((condition) => condition['type'] === type);
  return stringAt(found, 'status');
}

function isDone(object: ClusterObject): boolean {
  const phase = stringAt(object.status, 'phase');
  return phase === 'Succeeded' || phase === 'Failed' || typeof object.metadata.deletionTimestamp === 'string';
}

function lacksReplicas(object: ClusterObject): boolean {
  const spec = objectAt(object, 'spec');
  const status = objectAt(object, 'status');
  const wanted = typeof spec['replicas'] === 'number' ? spec['replicas'] : 1;
  const ready = typeof status['readyReplicas'] === 'number' ? status['readyReplicas'] : 0;
  return ready < wanted;
}

function written({ name, severity, labels, says }: Alert, startsAt: string, endsAt: string | null) {
  const all = { alertname: name, severity, ...labels };
  return {
    status: endsAt === null ? 'firing' : 'resolved',
    labels: all,
    annotations: { summary: says },
    startsAt,
    endsAt: endsAt ?? '0001-01-01T00:00:00Z',
    generatorURL: 'http://prometheus.example.com/graph',
    fingerprint: Buffer.from(JSON.stringify(all)).toString('hex').slice(0, 512),
  };
}

/** https://prometheus.io/docs/alerting/latest/configuration/#webhook_config */
function webhookOf(alerts: readonly { readonly status: string }[]) {
  return {
    version: '4',
    groupKey: '{}:{}',
    truncatedAlerts: 0,
    status: alerts.some(({ status }) => status === 'firing') ? 'firing' : 'resolved',
    receiver: 'k8s-storage',
    groupLabels: {},
    commonLabels: {},
    commonAnnotations: {},
    externalURL: 'http://alertmanager.example.com',
    alerts,
  };
}
