import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { rbacYaml } from '../../../src/cli/rbac.ts';
import { faults } from '../../../src/faults/index.ts';
import type { BackendCall, GrpcCode } from '../../../src/playground/cluster/backend.ts';
import type { ClusterSettings, Component as Part } from '../../../src/playground/cluster/controllers/context.ts';
import type { PolicyRule } from '../../../src/playground/cluster/kinds.ts';
import { World } from '../../../src/playground/cluster/scenarios/world.ts';
import { type SimulatedCluster, startSimulatedCluster } from '../../../src/playground/cluster/start.ts';
import { remediations } from '../../../src/remediations/index.ts';
import { Api } from './api.ts';
import { type AuditLine, AuditLog } from './audit.ts';
import { type DiskCall, type DiskFault, Disks, type DiskVolume, type Harm } from './backend.ts';
import { Bed, type BedOptions, type Component, Machine, type MachineSpec } from './bed.ts';
import type { Credentials, Sidecar } from './credentials.ts';
import { makeRoot, type Root } from './janitor.ts';
import { CLASS, isRecord } from './objects.ts';
import { Program } from './programs.ts';

/** How much faster than the wall the simulated cluster's time runs; its controllers never wait for anything else. */
const SPEED = 10;
const TICK_MS = 50;
const SEED = 4;

const NO_FORCE_DETACH = '--disable-force-detach-on-timeout=true';

/** As short against each other as those of a real bed: silence, then eviction, then the forced detach. */
function settingsOf({ forceDetachAfter, flags }: BedOptions): Partial<ClusterSettings> {
  return {
    provisionerVersion: 'v6.4.0',
    disableForceDetach: flags?.kcm?.includes(NO_FORCE_DETACH) === true,
    forceDetachMs: forceDetachAfter === undefined ? 60_000 : Number.parseInt(forceDetachAfter, 10) * 1000 * SPEED,
  };
}

const TOLERATION_SECONDS = 10;

/** What the playground does not pretend; a scenario that needs it is not for it. */
export class NotSimulated extends Error {
  override readonly name = 'NotSimulated';
}

/** The wall's time, but faster, and it can jump. */
class FastTime {
  readonly #began = Date.now();
  #passedMs = 0;

  now(): number {
    return this.#began + Math.round((Date.now() - this.#began) * SPEED) + this.#passedMs;
  }

  pass(milliseconds: number): void {
    this.#passedMs += milliseconds;
  }
}

interface Its {
  readonly cluster: SimulatedCluster;
  readonly time: FastTime;
  readonly api: Api;
  readonly disks: SimulatedDisks;
  readonly audit: AuditLog;
  readonly credentials: Credentials;
  readonly root: Root;
}

/**
 * A bed of the playground's controllers instead of Kubernetes' own: the same scenarios can be played on it, as far as
 * it pretends what they need. Its storage system has no mounts: a volume counts as staged where a container runs on it.
 */
export class SimulatedBed extends Bed {
  readonly #its: Its;

  private constructor(name: string, options: BedOptions, its: Its) {
    super(name, '', options);
    this.#its = its;
    for (const spec of machinesOf(options))
      this.machines.set(spec.name, new SimulatedMachine(spec, its.cluster, its.disks));
  }

  /** Starts one; it needs no program at all. */
  static async begin(name: string, options: BedOptions = {}): Promise<SimulatedBed> {
    refuse(options);
    const root = await makeRoot();
    const time = new FastTime();
    const cluster = await startSimulatedCluster({
      clock: time,
      scenario: 'incident',
      seed: SEED,
      tickMs: TICK_MS,
      settings: settingsOf(options),
      actRules: rulesOf('k8s-storage-act'),
    });
    makeWorld(cluster, options);
    const folder = join(root.path, 'who');
    const caFile = join(root.path, 'ca.crt');
    await mkdir(folder);
    await writeFile(caFile, cluster.ca);
    const kubeconfig = (who: string) => join(folder, `${who}.kubeconfig`);
    // A kubeconfig's context is how the product calls the cluster.
    for (const who of ['read', 'act'] as const)
      await writeFile(kubeconfig(who), cluster.kubeconfig(who).replaceAll('playground', name));
    const credentials: Credentials = {
      tokenFile: '',
      serviceAccountKey: '',
      auditPolicy: '',
      token: (who) => cluster.token(who === 'read' || who === 'act' ? who : 'admin'),
      kubeconfig,
    };
    const api = new Api(cluster.url, cluster.token('admin'), caFile);
    const disks = new SimulatedDisks(cluster, name);
    const its = { cluster, time, api, disks, audit: new Journal(cluster), credentials, root };
    return new SimulatedBed(name, options, its);
  }

  override get api(): Api {
    return this.#its.api;
  }

  override get disks(): Disks {
    return this.#its.disks;
  }

  override get audit(): AuditLog {
    return this.#its.audit;
  }

  override get credentials(): Credentials {
    return this.#its.credentials;
  }

  override get root(): string {
    return this.#its.root.path;
  }

  override now(): number {
    return this.#its.time.now();
  }

  /** The whole cluster is that much later: its controllers really had the time, and what they began in it looks old too. */
  override moveClock(milliseconds: number): void {
    const { time, cluster } = this.#its;
    time.pass(milliseconds);
    cluster.cluster.settle();
    time.pass(milliseconds);
    cluster.cluster.settle();
  }

  override program(name: Component | Sidecar): Program {
    return new SimulatedProgram(name, this.#its.cluster);
  }

  override async close(): Promise<void> {
    await this.#its.api.close();
    await this.#its.cluster.close();
    await this.#its.root.remove();
  }
}

function machinesOf({ machines }: BedOptions): readonly MachineSpec[] {
  return machines ?? [{ name: 'n1' }, { name: 'n2' }, { name: 'n3' }];
}

function refuse(options: BedOptions): void {
  const wanted: string[] = (['snapshots', 'leaderElection', 'drivers', 'driverOptions', 'driverSpec'] as const).filter(
    (key) => options[key] !== undefined && options[key] !== false,
  );
  const { kcm = [], ...others } = options.flags ?? {};
  wanted.push(...kcm.filter((flag) => flag !== NO_FORCE_DETACH), ...Object.keys(others));
  if (wanted.length > 0) throw new NotSimulated(`the playground has no ${wanted.join(', ')}`);
  if (machinesOf(options).some(({ limit }) => limit !== undefined))
    throw new NotSimulated('the playground has no volume limits');
}

/** The nodes, the driver and the class of a real bed; no driver pods, and the class is no default. */
function makeWorld({ cluster }: SimulatedCluster, options: BedOptions): void {
  const { store } = cluster;
  cluster.reset();
  store.tolerationSeconds = TOLERATION_SECONDS;
  new World(cluster).base(
    machinesOf(options).map(({ name, zone = 'z1' }) => ({ name, zone })),
    ['csi'],
  );
  const made = new Set([
    'daemonsets',
    'deployments',
    'replicasets',
    'pods',
    'events',
    'clusterroles',
    'clusterrolebindings',
  ]);
  store.clear((resource) => !made.has(resource));
  store.mutate('storageclasses', undefined, CLASS, (draft) => {
    draft.metadata.annotations = {};
  });
  cluster.settle();
}

const documentShape = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  rules: z
    .array(
      z.looseObject({ apiGroups: z.array(z.string()), resources: z.array(z.string()), verbs: z.array(z.string()) }),
    )
    .optional(),
});

/** The rules of one role as the product prints them. */
function rulesOf(role: string): readonly PolicyRule[] {
  const documents = parseAllDocuments(rbacYaml({ faults, remediations })).map((one) => documentShape.parse(one.toJS()));
  return documents.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === role)?.rules ?? [];
}

/** Its journal, as an audit log would tell it: every write that took effect through the API. */
class Journal extends AuditLog {
  readonly #cluster: SimulatedCluster;

  constructor(cluster: SimulatedCluster) {
    super('');
    this.#cluster = cluster;
  }

  override lines(): Promise<readonly AuditLine[]> {
    const lines = this.#cluster.journal.map((entry) => {
      const [resource = '', subresource] = entry.resource.split('/');
      return {
        auditID: entry.auditId,
        stage: 'ResponseComplete',
        verb: entry.verb,
        requestURI: '/',
        user: { username: entry.user },
        objectRef: {
          resource,
          ...(subresource === undefined ? {} : { subresource }),
          ...(entry.namespace === '' ? {} : { namespace: entry.namespace }),
          name: entry.name,
        },
        requestObject: entry.body,
        responseStatus: { code: entry.verb === 'create' ? 201 : 200 },
      };
    });
    return Promise.resolve(lines);
  }
}

class SimulatedMachine extends Machine {
  readonly #cluster: SimulatedCluster;
  readonly #disks: SimulatedDisks;

  constructor(spec: MachineSpec, cluster: SimulatedCluster, disks: SimulatedDisks) {
    super(spec, { root: '', file: '', kubeconfig: '', flags: [], logDir: '', disks });
    this.#cluster = cluster;
    this.#disks = disks;
  }

  override powerOff(): Promise<void> {
    this.#disks.dark.add(this.name);
    return this.killKubelet();
  }

  override killKubelet(): Promise<void> {
    this.#cluster.cluster.silence(this.name);
    return Promise.resolve();
  }

  override hang(): void {
    this.#cluster.cluster.silence(this.name);
  }

  override comeBack(): void {
    this.#disks.dark.delete(this.name);
    this.#cluster.cluster.revive(this.name);
  }

  override async reboot(): Promise<void> {
    await this.powerOff();
    this.#cluster.store.mutate('nodes', undefined, this.name, (draft) => {
      const info = draft.status?.['nodeInfo'];
      draft.status = { ...draft.status, nodeInfo: { ...(isRecord(info) ? info : {}), bootID: randomUUID() } };
    });
    this.comeBack();
  }

  override replace(): Promise<void> {
    throw new NotSimulated('the playground has no machines that are replaced');
  }
}

const partOf: Readonly<Record<string, Part>> = {
  kcm: 'kube-controller-manager',
  scheduler: 'kube-scheduler',
  'csi-attacher': 'external-attacher',
  'csi-provisioner': 'external-provisioner',
};

class SimulatedProgram extends Program {
  readonly #cluster: SimulatedCluster;
  readonly #part: Part;

  constructor(name: string, cluster: SimulatedCluster) {
    super(name, { file: '', args: [] }, '');
    const part = partOf[name];
    if (part === undefined) throw new NotSimulated(`the playground has no ${name} of its own`);
    this.#part = part;
    this.#cluster = cluster;
  }

  override start(): void {
    this.#cluster.cluster.start(this.#part);
  }

  override kill(): Promise<void> {
    this.#cluster.cluster.stop(this.#part);
    return Promise.resolve();
  }

  override hang(): void {
    this.#cluster.cluster.stop(this.#part);
  }

  override goOn(): void {
    this.#cluster.cluster.start(this.#part);
  }
}

const calls: readonly string[] = [
  'CreateSnapshot',
  'CreateVolume',
  'DeleteVolume',
  'ControllerPublishVolume',
  'ControllerUnpublishVolume',
] satisfies readonly BackendCall[];
const codes: readonly string[] = [
  'NotFound',
  'FailedPrecondition',
  'Internal',
  'ResourceExhausted',
  'InvalidArgument',
  'PermissionDenied',
] satisfies readonly GrpcCode[];
const isCall = (rpc: string): rpc is BackendCall => calls.includes(rpc);
const isCode = (code: string): code is GrpcCode => codes.includes(code);

/** The playground's backend in the words of the beds' storage system. */
class SimulatedDisks extends Disks {
  /** Machines without power: nothing is mounted there any more. */
  readonly dark = new Set<string>();
  readonly #cluster: SimulatedCluster;
  readonly #name: string;

  constructor(cluster: SimulatedCluster, name: string) {
    super('');
    this.#cluster = cluster;
    this.#name = name;
  }

  override volumes(): Promise<readonly DiskVolume[]> {
    return Promise.resolve(
      this.#cluster.backend.volumes().map((volume) => ({
        driver: volume.driver,
        handle: volume.handle,
        name: volume.name,
        sizeBytes: volume.sizeBytes,
        zone: volume.zone,
        tags: { cluster: volume.clusterId === this.#cluster.uid ? this.#name : volume.clusterId },
        source: '',
        createdAt: volume.createdAt,
        publishedTo: [...volume.attachedTo],
        stagedOn: this.#stagedOn(volume.handle),
        mountedOn: [],
      })),
    );
  }

  #stagedOn(handle: string): string[] {
    const { store } = this.#cluster;
    const volume = store.list('persistentvolumes').find((one) => one.spec.csi?.volumeHandle === handle);
    const claim = volume?.spec.claimRef;
    const nodes = store
      .list('pods', claim?.namespace)
      .filter(({ spec }) => (spec.volumes ?? []).some((one) => one.persistentVolumeClaim?.claimName === claim?.name))
      .filter(({ status }) => (status?.containerStatuses ?? []).some((one) => one.state?.['running'] !== undefined))
      .flatMap(({ spec }) => spec.nodeName ?? []);
    return [...new Set(nodes)].filter((node) => !this.dark.has(node)).map((node) => `i-${node}`);
  }

  override calls(after = 0): Promise<readonly DiskCall[]> {
    const all = this.#cluster.backend.calls().map((call, index) => ({
      seq: index + 1,
      at: call.at,
      driver: this.#cluster.cluster.settings.driver,
      rpc: call.call,
      volume: call.handle,
      name: '',
      node: call.node,
      code: /code = (\w+)/.exec(call.error)?.[1] ?? 'OK',
      message: call.error,
      milliseconds: 0,
    }));
    return Promise.resolve(all.filter(({ seq }) => seq > after));
  }

  /** Without mounts there is no harm to be seen; scenarios of harm are not for it. */
  override harm(): Promise<readonly Harm[]> {
    return Promise.resolve([]);
  }

  override fail({ rpc, volume, code = 'Internal', message = '', ...other }: DiskFault): Promise<number> {
    const more = Object.keys(other);
    if (!isCall(rpc) || !isCode(code) || more.length > 0)
      throw new NotSimulated(`the playground's backend has no fault of ${rpc} ${code} ${more.join(' ')}`);
    this.#cluster.backend.fail(rpc, code, message, volume);
    return Promise.resolve(0);
  }

  override heal(): Promise<void> {
    this.#cluster.backend.heal();
    return Promise.resolve();
  }

  override publish(handle: string, node: string): Promise<void> {
    return this.#attach(handle, (attached) => [...attached, node]);
  }

  override unpublish(handle: string, node: string): Promise<void> {
    return this.#attach(handle, (attached) => attached.filter((one) => one !== node));
  }

  /** Past Kubernetes and its driver. */
  #attach(handle: string, change: (attached: readonly string[]) => readonly string[]): Promise<void> {
    const volume = this.#cluster.backend.get(handle);
    if (!volume) throw new Error(`there is no volume ${handle}`);
    this.#cluster.backend.load({ ...volume, attachedTo: change(volume.attachedTo) });
    return Promise.resolve();
  }

  override lose(handle: string): Promise<void> {
    this.#cluster.backend.lose(handle);
    return Promise.resolve();
  }

  override seed(seeded: Parameters<Disks['seed']>[0]): Promise<DiskVolume> {
    throw new NotSimulated(`the playground's backend has no volume ${seeded.handle ?? ''} of others`);
  }
}
