import { randomBytes } from 'node:crypto';
import { stringify } from 'yaml';
import type { JournalEntry } from './api-server.ts';
import { ApiServer } from './api-server.ts';
import type { ApiUser, Role } from './authz.ts';
import { defaultActRules, userOf } from './authz.ts';
import type { Backend } from './backend.ts';
import { Cluster } from './cluster.ts';
import type { ClusterSettings } from './controllers/context.ts';
import type { Fault } from './faults.ts';
import type { KubeObject, PolicyRule, Resource } from './kinds.ts';
import { infoOf, resourceTable } from './kinds.ts';
import type { Scenario } from './scenarios/define.ts';
import { findScenario, scenarios } from './scenarios/index.ts';
import type { Store } from './store.ts';
import type { SimClock } from './time.ts';
import { seededRandom } from './time.ts';
import { selfSigned } from './tls.ts';

/** How to start a simulated cluster. */
export interface StartOptions {
  readonly clock: SimClock;
  /** Id of the scenario to begin with. */
  readonly scenario: string;
  /** Port on 127.0.0.1; absent or 0: a free one. */
  readonly port?: number;
  /** Real milliseconds between two steps of the controllers; 0: they move only by `settle()`. Default 250. */
  readonly tickMs?: number;
  /** Seed of ids and names. */
  readonly seed: number;
  /** Rules of the user `act`; absent: the least rights of every known act. */
  readonly actRules?: readonly PolicyRule[];
  /** Overrides of every scenario's settings (timers, versions). */
  readonly settings?: Partial<ClusterSettings>;
  /** Is told when a controller fails; the cluster goes on. */
  readonly onError?: (error: unknown) => void;
}

/** A change as the page's panel shows it. */
export interface PanelChange {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly kind: string;
  readonly object: KubeObject;
}

/** A running simulated cluster. */
export interface SimulatedCluster {
  /** `https://127.0.0.1:PORT`. */
  readonly url: string;
  /** PEM of the authority that signed the server's certificate (its own). */
  readonly ca: string;
  /** uid of kube-system: the cluster's identity, kept across scenarios. */
  readonly uid: string;
  readonly backend: Backend;
  readonly store: Store;
  readonly cluster: Cluster;
  readonly server: ApiServer;
  /** The scenario that was loaded last. */
  readonly scenario: Scenario;
  /** Writes through the API that took effect. */
  readonly journal: readonly JournalEntry[];
  /** Bearer token of a user. */
  token(user: Role): string;
  /** Kubeconfig (YAML) of a user; kubectl and @kubernetes/client-node read it. */
  kubeconfig(user: Role): string;
  /** Injects an API error; the returned function takes it out. */
  inject(fault: Fault): () => void;
  /** Tells all present objects, then every change, until the returned function is called. */
  watchAll(listener: (change: PanelChange) => void): () => void;
  /** Replaces the state by a scenario's. Throws when there is no such scenario. */
  loadScenario(id: string): void;
  /** Lets the controllers run until the cluster is at rest at the present time. */
  settle(): Promise<void>;
  /** Stops the loop and the server. */
  close(): Promise<void>;
}

const DEFAULT_TICK_MS = 250;

function kubeconfigOf(server: string, ca: string, user: string, token: string): string {
  const name = 'playground';
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(ca, 'utf8').toString('base64') } }],
    users: [{ name: user, user: { token } }],
    contexts: [{ name, context: { cluster: name, user, namespace: 'default' } }],
    'current-context': name,
  });
}

/** Starts the API server on loopback, loads the scenario and sets the controllers going. */
export async function startSimulatedCluster(options: StartOptions): Promise<SimulatedCluster> {
  const cluster = new Cluster({
    clock: options.clock,
    seed: options.seed,
    ...(options.settings === undefined ? {} : { settings: options.settings }),
  });
  let scenario = load(cluster, options.scenario);
  const tokens = new Map<Role, string>();
  const users = new Map<string, ApiUser>();
  for (const role of ['read', 'act', 'admin'] as const) {
    // Tokens are secrets of this process and must not follow from the seed.
    const token = randomBytes(24).toString('base64url');
    tokens.set(role, token);
    users.set(token, userOf(role, options.actRules ?? defaultActRules()));
  }
  // Certificates are checked against the machine's real clock, whatever the simulated one says.
  const certificate = selfSigned(performance.timeOrigin + performance.now());
  const server = new ApiServer({
    store: cluster.store,
    clock: options.clock,
    // Requests must not change which names the controllers choose next.
    random: seededRandom(options.seed + 1),
    users,
    version: cluster.settings.version,
    certificate,
  });
  const port = await server.listen(options.port ?? 0);
  const url = `https://127.0.0.1:${port}`;
  const step = (): void => {
    try {
      cluster.pass();
    } catch (error) {
      options.onError?.(error);
    }
  };
  const tickMs = options.tickMs ?? DEFAULT_TICK_MS;
  const loop = tickMs > 0 ? setInterval(step, tickMs) : undefined;

  return {
    url,
    ca: certificate.cert,
    uid: cluster.uid,
    backend: cluster.backend,
    store: cluster.store,
    cluster,
    server,
    get scenario() {
      return scenario;
    },
    get journal() {
      return server.journal;
    },
    token: (user) => tokens.get(user) ?? '',
    kubeconfig: (user) => kubeconfigOf(url, certificate.cert, user, tokens.get(user) ?? ''),
    inject: (fault) => server.inject(fault),
    watchAll(listener) {
      for (const { resource, kind } of resourceTable) {
        for (const object of cluster.store.list(resource)) listener({ type: 'ADDED', resource, kind, object });
      }
      return cluster.store.subscribe((change) => {
        listener({
          type: change.type,
          resource: change.resource,
          kind: infoOf(change.resource).kind,
          object: change.object,
        });
      });
    },
    loadScenario(id) {
      scenario = load(cluster, id);
    },
    settle() {
      cluster.settle();
      return Promise.resolve();
    },
    async close() {
      clearInterval(loop);
      await server.close();
    },
  };
}

function load(cluster: Cluster, id: string): Scenario {
  const scenario = findScenario(id);
  if (scenario === undefined) {
    throw new Error(
      `there is no scenario ${JSON.stringify(id)}; known are ${scenarios.map((entry) => entry.id).join(', ')}`,
    );
  }
  cluster.reset(scenario.settings);
  scenario.setup(cluster);
  cluster.settle();
  return scenario;
}
