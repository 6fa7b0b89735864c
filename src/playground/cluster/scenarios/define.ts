import type { Cluster } from '../cluster.ts';
import type { ClusterSettings } from '../controllers/context.ts';

/** A state of the cluster to play with. */
export interface Scenario {
  /** Short name in lower case with dashes. */
  readonly id: string;
  readonly title: string;
  /** What has happened, in two or three sentences for the person at the page. */
  readonly story: string;
  readonly settings?: Partial<ClusterSettings>;
  /**
   * Puts the state into an emptied cluster, with times in the past so that it can be diagnosed at once. Left alone,
   * the controllers must keep it as it is.
   */
  setup(cluster: Cluster): void;
}

/** Declares a scenario. */
export function defineScenario(scenario: Scenario): Scenario {
  return scenario;
}
