import { ownedBy } from '../controllers/lookup.ts';
import { defineScenario } from './define.ts';
import { DAY, HOUR, oneContainer, World } from './world.ts';

/** Error 1 of the source article: claims that stay Terminating. */
export const claimTerminating = defineScenario({
  id: 'claim-terminating',
  title: 'Two claims stay Terminating',
  story:
    'Claim reports was deleted two hours ago, claim uploads one hour ago. Both still exist: a finished Job left its pod behind, ' +
    'and the web shop still runs on the other one.',
  setup(cluster) {
    const world = new World(cluster);
    const { store } = cluster;
    world.base(
      [
        { name: 'n1', zone: 'z1' },
        { name: 'n2', zone: 'z1' },
        { name: 'n3', zone: 'z1' },
      ],
      ['shop'],
    );
    world.volume({ namespace: 'shop', claim: 'reports', age: 9 * DAY, claimDeletedFor: 2 * HOUR });
    const spec = { ...oneContainer('registry.example.com/report:1.0', 'reports'), restartPolicy: 'Never' };
    const labels = { 'batch.kubernetes.io/job-name': 'nightly-report' };
    const job = store.create(
      'jobs',
      {
        metadata: { name: 'nightly-report', namespace: 'shop', creationTimestamp: world.ago(9 * HOUR) },
        spec: { template: { metadata: { labels }, spec }, completions: 1, parallelism: 1, backoffLimit: 6 },
        status: {
          succeeded: 1,
          startTime: world.ago(9 * HOUR),
          completionTime: world.ago(8 * HOUR),
          conditions: [{ type: 'Complete', status: 'True', lastTransitionTime: world.ago(8 * HOUR) }],
        },
      },
      { seed: true },
    );
    world.pod(
      { name: 'nightly-report-x7k2p', namespace: 'shop', labels, owner: ownedBy(job), spec },
      { node: 'n2', age: 9 * HOUR, state: 'completed' },
    );
    world.volume({ namespace: 'shop', claim: 'uploads', age: 30 * DAY, attachedTo: 'n3', claimDeletedFor: HOUR });
    const web = world.deployment({
      namespace: 'shop',
      name: 'web',
      age: 30 * DAY,
      labels: { app: 'web' },
      strategy: 'Recreate',
      spec: oneContainer('registry.example.com/web:5.1', 'uploads'),
    });
    world.podOf(world.replicaSet(web, 1, 30 * DAY), { node: 'n3', age: 2 * DAY, state: 'running' });
  },
});
