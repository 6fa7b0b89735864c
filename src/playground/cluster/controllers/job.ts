import { at } from '../json.ts';
import type { Kinds, Pod } from '../kinds.ts';
import { rfc3339 } from '../time.ts';
import type { Context, Controller } from './context.ts';
import { controllerOf, ownedBy } from './lookup.ts';

type Job = Kinds['jobs'];

/**
 * The Job controller in the small: one pod, which it never replaces (`backoffLimit: 0`) nor removes, and the condition
 * that tells how it ended. Source: pkg/controller/job.
 */
export class JobController implements Controller {
  readonly name = 'job';
  readonly component = 'kube-controller-manager' as const;

  reconcile(context: Context): void {
    for (const job of context.store.list('jobs')) {
      if (job.metadata.deletionTimestamp !== undefined || isOver(job)) continue;
      const pod = context.store
        .list('pods', job.metadata.namespace ?? '')
        .find((one) => controllerOf(one)?.uid === job.metadata.uid);
      if (pod === undefined) this.#begin(context, job);
      else if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') this.#end(context, job, pod);
    }
  }

  #begin({ store, recorder, clock }: Context, job: Job): void {
    const template = job.spec?.template;
    if (template === undefined) return;
    const { name, namespace } = job.metadata;
    const pod = store.create('pods', {
      metadata: {
        generateName: `${name}-`,
        namespace,
        labels: { ...template.metadata?.labels, 'batch.kubernetes.io/job-name': name },
        ownerReferences: [ownedBy(job)],
      },
      spec: structuredClone(template.spec),
    });
    store.mutate('jobs', namespace, name, (draft) => {
      draft.status = { startTime: rfc3339(clock.now()), active: 1 };
    });
    recorder.tell({
      on: job,
      type: 'Normal',
      reason: 'SuccessfulCreate',
      message: `Created pod: ${pod.metadata.name}`,
      component: 'job-controller',
    });
  }

  #end({ store, recorder, clock }: Context, job: Job, pod: Pod): void {
    const done = pod.status?.phase === 'Succeeded';
    const stamp = rfc3339(clock.now());
    store.mutate('jobs', job.metadata.namespace, job.metadata.name, (draft) => {
      draft.status = {
        startTime: at(job, 'status', 'startTime'),
        ...(done ? { succeeded: 1, completionTime: stamp } : { failed: 1 }),
        conditions: [
          {
            type: done ? 'Complete' : 'Failed',
            status: 'True',
            lastProbeTime: stamp,
            lastTransitionTime: stamp,
            ...(done ? {} : { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }),
          },
        ],
      };
    });
    recorder.tell({
      on: job,
      type: done ? 'Normal' : 'Warning',
      reason: done ? 'Completed' : 'BackoffLimitExceeded',
      message: done ? 'Job completed' : 'Job has reached the specified backoff limit',
      component: 'job-controller',
    });
  }
}

function isOver(job: Job): boolean {
  return at(job, 'status', 'conditions') !== undefined;
}
