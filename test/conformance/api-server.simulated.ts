import type { SimulatedCluster } from '../../src/playground/cluster/start.ts';
import type { ServerUnderTest } from './api-server.runner.ts';

/** The simulated server with its accounts, as the suite wants one; `act` must have the suite's `limitedRules`. */
export function underTest(cluster: SimulatedCluster, patienceMs = 10_000): ServerUnderTest {
  const connect = (user: 'act' | 'admin') => ({
    baseUrl: cluster.url,
    token: cluster.token(user),
    ca: cluster.ca,
    patienceMs,
  });
  return {
    admin: connect('admin'),
    limited: connect('act'),
    forget() {
      cluster.store.compact();
      cluster.server.expireContinueTokens();
      return Promise.resolve();
    },
  };
}
