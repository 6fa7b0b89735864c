import { existsSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { stringify } from 'yaml';
import { rbacYaml } from '../../../src/cli/rbac.ts';
import { resourceNames, resources } from '../../../src/domain/resources.ts';
import { faults } from '../../../src/faults/index.ts';
import { remediations } from '../../../src/remediations/index.ts';
import { Api } from './api.ts';
import { AuditLog } from './audit.ts';
import { Disks } from './backend.ts';
import { ADMIN, type Credentials, type Sidecar, sidecars, writeCredentials } from './credentials.ts';
import { makeRoot, type Root } from './janitor.ts';
import {
  CLASS,
  DRIVER,
  isReady,
  type KubeObject,
  listAt,
  type Manifest,
  namespace,
  storageClass,
  textAt,
} from './objects.ts';
import { freePorts } from './ports.ts';
import { type Command, Program } from './programs.ts';
import { Fillings } from './usage.ts';

/** One machine of a bed. */
export interface MachineSpec {
  readonly name: string;
  /** `z1` unless said. */
  readonly zone?: string;
  /** Volumes that fit; no limit unless said. */
  readonly limit?: number;
}

export interface BedOptions {
  /** Three machines in zone z1 unless said: with one alone, or most of a zone down, evictions behave differently. */
  readonly machines?: readonly MachineSpec[];
  /** Custom resources of snapshots, and the two controllers that serve them. */
  readonly snapshots?: boolean;
  /** Components hold leases. Not together with a clock that is moved by more than their length. */
  readonly leaderElection?: boolean;
  /** `fast` unless said: a silent node after 8 s, eviction after 5 s, forced detach after 20 s. */
  readonly timers?: 'fast' | 'default';
  /** What the forced detach waits for, such as `3s`; over `timers`. */
  readonly forceDetachAfter?: string;
  /** More flags of a component. */
  readonly flags?: Readonly<Partial<Record<Component | Sidecar, readonly string[]>>>;
  /** Further drivers of the storage system, as simcsi takes them: `nfs.example.com,attach=false`. */
  readonly drivers?: readonly string[];
  /** Options of the bed's own driver, such as `topology=false`. */
  readonly driverOptions?: readonly string[];
  /** The bed's CSIDriver; more of its `spec`. */
  readonly driverSpec?: Readonly<Record<string, unknown>>;
  /** Nothing but an API server on its etcd: no controllers, no machines, no driver, and none of the bot's roles. */
  readonly isApiOnly?: boolean;
  /** Folder of the programs of another version of Kubernetes, for the control plane alone. */
  readonly controlPlane?: string;
}

export type Component = 'etcd' | 'apiserver' | 'kcm' | 'scheduler' | 'simcsi';

const ATTEMPTS = 3;
const READY_MS = 120_000;
const POLL_MS = 150;
/** Three times what the slowest timer takes, on a machine that does something else as well. */
const patienceMs: Readonly<Record<'fast' | 'default', number>> = { fast: 90_000, default: 1_200_000 };

const CONTROLLERS = [
  'persistentvolume-attach-detach-controller',
  'persistentvolume-binder-controller',
  'persistentvolume-expander-controller',
  'persistentvolume-protection-controller',
  'persistentvolumeclaim-protection-controller',
  'ephemeral-volume-controller',
  'node-lifecycle-controller',
  'taint-eviction-controller',
  'pod-garbage-collector-controller',
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'serviceaccount-token-controller',
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
  'daemonset-controller',
  'job-controller',
  'root-ca-certificate-publisher-controller',
  'resourcequota-controller',
  'endpointslice-controller',
];

/** Starts a cluster of its own; about five seconds on a machine that does nothing else. */
export async function startBed(name: string, programs: string, options: BedOptions = {}): Promise<Bed> {
  for (let attempt = 1; ; attempt += 1) {
    const bed = new Bed(name, programs, options);
    try {
      await bed.start();
      return bed;
    } catch (error) {
      const why = bed.whyNotStarted();
      await bed.close();
      // A port that was free a moment ago may be taken by now.
      if (attempt >= ATTEMPTS || !/address already in use/.test(why))
        throw new Error(`the bed did not start: ${String(error)}\n${why}`, { cause: error });
    }
  }
}

/**
 * A real control plane, real kubelets and the real sidecars over a simulated disk, on loopback, with a folder of its own
 * that goes with it. What people would do with kubectl is done here as administrator.
 */
export class Bed {
  readonly name: string;
  readonly options: BedOptions;
  readonly machines = new Map<string, Machine>();
  /** How full the claims are; nothing unless a scenario says so. */
  readonly usage = new Fillings(() => this.api);
  readonly #bin: string;
  readonly #programs = new Map<string, Program>();
  #detour = '';
  #offsetMs = 0;
  #uid: string | undefined;
  #parts: Parts | undefined;
  #root: Root | undefined;

  constructor(name: string, programs: string, options: BedOptions) {
    this.name = name;
    this.options = options;
    this.#bin = programs;
  }

  get api(): Api {
    return this.#its.api;
  }

  get disks(): Disks {
    return this.#its.disks;
  }

  get audit(): AuditLog {
    return this.#its.audit;
  }

  get credentials(): Credentials {
    return this.#its.credentials;
  }

  /** By which the product reaches this cluster: directly, or past a proxy of the test's. */
  kubeconfigOfBot(who: 'read' | 'act'): string {
    return `${this.credentials.kubeconfig(who)}${this.#detour}`;
  }

  /** From here on the product's own connections go to that address. */
  async reroute(server: string, ca: string): Promise<void> {
    const detour = '.detour';
    const caFile = join(this.root, 'who/detour.crt');
    await writeFile(caFile, ca);
    for (const who of ['read', 'act']) {
      const path = this.credentials.kubeconfig(who);
      const direct = await readFile(path, 'utf8');
      const text = direct.replaceAll(this.api.server, server).replaceAll(this.caFile, caFile);
      await writeFile(`${path}${detour}`, text, { mode: 0o600 });
    }
    this.#detour = detour;
  }

  /** The authority of its API server's certificate, and that certificate itself. */
  get caFile(): string {
    return this.#its.caFile;
  }

  /** The etcd below its API server, for what only the storage can do to it. */
  get etcd(): string {
    return this.#its.etcd;
  }

  get root(): string {
    if (!this.#root) throw new Error('the bed is not started');
    return this.#root.path;
  }

  get #its(): Parts {
    if (!this.#parts) throw new Error('the bed is not started');
    return this.#parts;
  }

  /** The time as the product sees it in this cluster. Grace times pass by moving it, never by waiting. */
  now(): number {
    return Date.now() + this.#offsetMs;
  }

  /** From here on the product sees this cluster that much later than it is. */
  moveClock(milliseconds: number): void {
    this.#offsetMs += milliseconds;
  }

  /** The uid of kube-system, which is the cluster's identity. */
  async uid(): Promise<string> {
    this.#uid ??= (await this.api.get('ns kube-system')).metadata.uid;
    return this.#uid;
  }

  // --- programs

  /** A component or sidecar, to be killed, held, or started again. */
  program(name: Component | Sidecar): Program {
    const found = this.#programs.get(name);
    if (!found) throw new Error(`this bed has no ${name}`);
    return found;
  }

  machine(name: string): Machine {
    const found = this.machines.get(name);
    if (!found) throw new Error(`this bed has no machine ${name}`);
    return found;
  }

  async start(): Promise<void> {
    const root = await makeRoot();
    this.#root = root;
    const [etcdPort, peerPort, apiPort, diskPort] = await freePorts(4);
    const specs = this.options.machines ?? [{ name: 'n1' }, { name: 'n2' }, { name: 'n3' }];
    const server = `https://127.0.0.1:${apiPort}`;
    const path = (below: string) => join(root.path, below);
    await Promise.all(['log', 'pki', 'who', 'csi', 'm'].map((folder) => mkdir(path(folder))));
    const caFile = path('pki/apiserver.crt');
    const nodes = specs.map((spec) => spec.name);
    const credentials = await writeCredentials(path('who'), { server, caFile, nodes, context: this.name });
    const etcd = `http://127.0.0.1:${etcdPort}`;
    this.#add(
      'etcd',
      this.#component('etcd', [
        `--data-dir=${path('etcd')}`,
        `--listen-client-urls=${etcd}`,
        `--advertise-client-urls=${etcd}`,
        `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
        '--unsafe-no-fsync',
        '--log-level=error',
      ]),
      path('log'),
    );
    this.#add(
      'apiserver',
      this.#component('kube-apiserver', [
        `--etcd-servers=${etcd}`,
        `--secure-port=${apiPort}`,
        '--bind-address=127.0.0.1',
        `--cert-dir=${path('pki')}`,
        '--service-cluster-ip-range=10.0.0.0/24',
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${credentials.serviceAccountKey}`,
        `--service-account-signing-key-file=${credentials.serviceAccountKey}`,
        `--token-auth-file=${credentials.tokenFile}`,
        '--authorization-mode=Node,RBAC',
        '--enable-admission-plugins=NodeRestriction',
        '--disable-admission-plugins=ServiceAccount',
        `--audit-log-path=${path('audit.log')}`,
        `--audit-policy-file=${credentials.auditPolicy}`,
        ...this.#fast('--default-not-ready-toleration-seconds=5', '--default-unreachable-toleration-seconds=5'),
        ...this.#flags('apiserver'),
      ]),
      path('log'),
    );
    await this.#startPrograms('etcd', 'apiserver');
    // The key is written after the certificate: once it is there, the certificate is whole.
    await this.#wait('the certificate of the API server', () => existsSync(path('pki/apiserver.key')));
    const disks = new Disks(`http://127.0.0.1:${diskPort}`);
    const api = new Api(server, credentials.token(ADMIN), caFile);
    this.#parts = { api, disks, credentials, etcd, caFile, audit: new AuditLog(path('audit.log')) };
    await this.#wait('the API server', () => this.#isServed());
    if (this.options.isApiOnly === true) return;
    this.#addControllers(credentials, path, caFile);
    this.#addDriver(credentials, path, diskPort ?? 0);
    await this.#applyBasics();
    await this.#startPrograms(...[...this.#programs.keys()].filter((name) => name !== 'etcd' && name !== 'apiserver'));
    await this.#wait('the storage system', () => disks.isHealthy());
    await Promise.all(specs.map((spec) => this.#addMachine(spec, path('m'), path('log'))));
    await this.#wait('its machines', () => this.#areMachinesReady());
  }

  #component(name: string, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Command {
    return { file: join(this.options.controlPlane ?? this.#bin, 'controlplane'), args: [name, ...args], environment };
  }

  #add(name: string, command: Command, logDir: string): void {
    this.#programs.set(name, new Program(name, command, logDir));
  }

  #addControllers(credentials: Credentials, path: (below: string) => string, caFile: string): void {
    const elect = `--leader-elect=${this.options.leaderElection === true}`;
    const kcm = credentials.kubeconfig('kcm');
    const { forceDetachAfter } = this.options;
    const after = forceDetachAfter ?? (this.options.timers === 'default' ? undefined : '20s');
    this.#add(
      'kcm',
      this.#component(
        'kube-controller-manager',
        [
          `--kubeconfig=${kcm}`,
          `--authentication-kubeconfig=${kcm}`,
          `--authorization-kubeconfig=${kcm}`,
          elect,
          '--secure-port=0',
          `--cert-dir=${path('pki/kcm')}`,
          `--service-account-private-key-file=${credentials.serviceAccountKey}`,
          `--root-ca-file=${caFile}`,
          '--use-service-account-credentials=true',
          '--kube-api-qps=500',
          '--kube-api-burst=1000',
          `--controllers=${CONTROLLERS.join(',')}`,
          ...this.#fast(
            '--node-monitor-grace-period=8s',
            '--node-monitor-period=1s',
            '--attach-detach-reconcile-sync-period=2s',
            '--pvclaimbinder-sync-period=2s',
          ),
          ...this.#flags('kcm'),
        ],
        after === undefined ? {} : { FORCE_DETACH_AFTER: after },
      ),
      path('log'),
    );
    this.#add(
      'scheduler',
      this.#component('kube-scheduler', [
        `--kubeconfig=${credentials.kubeconfig('scheduler')}`,
        elect,
        '--secure-port=0',
        `--cert-dir=${path('pki/scheduler')}`,
        ...this.#flags('scheduler'),
      ]),
      path('log'),
    );
  }

  #addDriver(credentials: Credentials, path: (below: string) => string, port: number): void {
    const drivers = [[DRIVER, ...(this.options.driverOptions ?? [])].join(','), ...(this.options.drivers ?? [])];
    this.#add(
      'simcsi',
      {
        file: join(this.#bin, 'simcsi'),
        args: [
          `--listen=127.0.0.1:${port}`,
          `--sockets=${path('csi')}`,
          `--cluster=${this.name}`,
          ...drivers.map((driver) => `--driver=${driver}`),
        ],
      },
      path('log'),
    );
    const wanted = sidecars.filter((name) => this.options.snapshots === true || !name.includes('snapshot'));
    for (const name of wanted) {
      this.#add(
        name,
        {
          file: join(this.#bin, name),
          args: [
            `--kubeconfig=${credentials.kubeconfig(name)}`,
            ...(name === 'snapshot-controller' ? [] : [`--csi-address=${path(`csi/${DRIVER}.sock`)}`]),
            ...sidecarFlags[name],
            ...(this.options.leaderElection === true ? ['--leader-election', '--leader-election-namespace=csi'] : []),
            ...this.#flags(name),
          ],
        },
        path('log'),
      );
    }
  }

  async #addMachine(spec: MachineSpec, folder: string, logDir: string): Promise<void> {
    const machine = new Machine(spec, {
      root: join(folder, spec.name),
      file: join(this.#bin, 'simnode'),
      kubeconfig: this.credentials.kubeconfig(spec.name),
      flags: this.#fast('--status-period=2s', '--lease-seconds=8', '--sync-frequency=10s'),
      logDir,
      disks: this.disks,
    });
    this.machines.set(spec.name, machine);
    await machine.start();
  }

  #fast(...flags: readonly string[]): readonly string[] {
    return this.options.timers === 'default' ? [] : flags;
  }

  #flags(name: Component | Sidecar): readonly string[] {
    return this.options.flags?.[name] ?? [];
  }

  async #startPrograms(...names: readonly string[]): Promise<void> {
    for (const name of names) this.#programs.get(name)?.start();
  }

  async #isServed(): Promise<boolean> {
    try {
      await this.api.call('GET', '/readyz');
      return true;
    } catch {
      return false;
    }
  }

  /** The driver, its class, the accounts of the sidecars, and the bot's own roles as the product prints them. */
  async #applyBasics(): Promise<void> {
    await this.api.apply(
      namespace('csi'),
      rbacYaml({ faults, remediations }),
      ...sidecars.map(adminBinding),
      {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'CSIDriver',
        metadata: { name: DRIVER },
        spec: { attachRequired: true, podInfoOnMount: false, ...this.options.driverSpec },
      },
      storageClass(CLASS),
    );
    if (this.options.snapshots !== true) return;
    const folder = join(this.#bin, 'crds');
    for (const file of await readdir(folder)) await this.api.apply(await readFile(join(folder, file), 'utf8'));
  }

  async #areMachinesReady(): Promise<boolean> {
    const nodes = await this.api.list('nodes');
    const drivers = await this.api.list('CSINode');
    const has = (name: string) =>
      drivers.some((one) => one.metadata.name === name && listAt(one, 'spec.drivers').length > 0);
    return [...this.machines.keys()].every((name) => {
      const node = nodes.find((one) => one.metadata.name === name);
      return isReady(node) && listAt(node, 'spec.taints').length === 0 && has(name);
    });
  }

  /** As `until`, and a program that has ended in the meantime ends the waiting. */
  async #wait(what: string, isThere: () => boolean | Promise<boolean>): Promise<void> {
    await this.until(
      what,
      async () => {
        const ended = this.#all().find((program) => !program.isRunning && existsSync(program.logFile));
        if (ended) throw new Error(`${ended.name} has ended`);
        return (await isThere()) || undefined;
      },
      READY_MS,
    );
  }

  /** The last lines of what has ended, for whoever reads that a bed did not start. */
  whyNotStarted(): string {
    return this.#all()
      .filter((program) => existsSync(program.logFile))
      .map((program) => `--- ${program.name} ${program.isRunning ? 'runs' : 'has ended'}\n${program.lastLines()}`)
      .join('\n');
  }

  /** Every process of it that runs now. */
  pids(): readonly number[] {
    return this.#all().flatMap(({ pid }) => pid ?? []);
  }

  #all(): readonly Program[] {
    return [...[...this.machines.values()].map(({ program }) => program), ...this.#programs.values()];
  }

  // --- the world

  /** Looks at the state again and again until the predicate gives something; the deadline ends only what has failed. */
  async until<T>(
    what: string,
    look: () => T | undefined | Promise<T | undefined>,
    withinMs = patienceMs[this.options.timers ?? 'fast'],
  ): Promise<T> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      if (performance.now() > deadline) throw new Error(`waited ${withinMs / 1000} s in vain for ${what}`);
      await pause(POLL_MS);
    }
  }

  apply(...manifests: readonly (Manifest | string)[]): Promise<readonly KubeObject[]> {
    return this.api.apply(...manifests);
  }

  untilThere(target: string): Promise<KubeObject> {
    return this.until(`${target} to be there`, () => this.api.find(target));
  }

  async untilGone(target: string): Promise<void> {
    await this.until(`${target} to be gone`, async () => ((await this.api.find(target)) ? undefined : true));
  }

  async untilDeleting(target: string): Promise<KubeObject> {
    return this.until(`${target} to be deleting`, async () => {
      const found = await this.api.find(target);
      return found?.metadata.deletionTimestamp === undefined ? undefined : found;
    });
  }

  async untilReady(target: string): Promise<KubeObject> {
    return this.until(`${target} to be Ready`, async () => {
      const found = await this.api.find(target);
      return isReady(found) ? found : undefined;
    });
  }

  async untilPhase(target: string, phase: string): Promise<KubeObject> {
    return this.until(`${target} to be ${phase}`, async () => {
      const found = await this.api.find(target);
      return textAt(found, 'status.phase') === phase ? found : undefined;
    });
  }

  async untilNotReady(node: string): Promise<KubeObject> {
    return this.until(`node ${node} not to be Ready`, async () => {
      const found = await this.api.find(`node ${node}`);
      return found && !isReady(found) ? found : undefined;
    });
  }

  /** Pods with the label `app: NAME`, which the helpers of `objects.ts` give to a workload's pods. */
  async podsOf(namespaceName: string, app: string): Promise<readonly KubeObject[]> {
    const pods = await this.api.list('pods', namespaceName);
    return pods.filter((pod) => pod.metadata.labels?.['app'] === app);
  }

  /** The one pod that fits, once there is one. */
  untilPod(what: string, namespaceName: string, app: string, fits: (pod: KubeObject) => boolean): Promise<KubeObject> {
    return this.until(what, async () => (await this.podsOf(namespaceName, app)).find(fits));
  }

  /** An event about an object of that name whose message fits. */
  untilEvent(namespaceName: string, name: string, message: RegExp): Promise<KubeObject> {
    return this.until(`an event about ${name} that says ${message}`, async () => {
      const events = await this.api.list('Event', namespaceName);
      return events.find(
        (event) => textAt(event, 'involvedObject.name') === name && message.test(textAt(event, 'message')),
      );
    });
  }

  /** The PV to which a claim is bound, once it is. */
  async untilVolumeOf(claimPath: string): Promise<KubeObject> {
    const bound = await this.untilPhase(`pvc ${claimPath}`, 'Bound');
    return this.api.get(`pv ${textAt(bound, 'spec.volumeName')}`);
  }

  /** The PV that its claim has let go of, once there is one. */
  untilReleased(): Promise<KubeObject> {
    return this.until('a volume to be Released', async () =>
      (await this.api.list('pv')).find((one) => textAt(one, 'status.phase') === 'Released'),
    );
  }

  /** Attachments of a PV, deleting ones too. */
  async attachmentsOf(volumeName: string): Promise<readonly KubeObject[]> {
    const all = await this.api.list('va');
    return all.filter((one) => textAt(one, 'spec.source.persistentVolumeName') === volumeName);
  }

  /** Until nothing of a PV is attached anywhere, nor on its way out. */
  async untilDetached(volumeName: string): Promise<void> {
    await this.until(
      `${volumeName} to be detached`,
      async () => (await this.attachmentsOf(volumeName)).length === 0 || undefined,
    );
  }

  // --- the end

  /** Keeps what tells why a scenario failed: logs, audit log, every object, the storage system. */
  async keep(folder: string): Promise<void> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(folder, { recursive: true });
    await cp(join(this.root, 'log'), join(folder, 'log'), { recursive: true });
    await cp(join(this.root, 'audit.log'), join(folder, 'audit.log')).catch(() => undefined);
    const documents: unknown[] = [];
    for (const name of resourceNames) {
      if (name === 'backendvolumes') continue;
      documents.push(...(await this.api.list(resources[name].kind).catch(() => [])));
    }
    await writeFile(join(folder, 'objects.yaml'), documents.map((one) => stringify(one)).join('---\n'));
    const seen = await Promise.all([this.disks.volumes(), this.disks.calls(), this.disks.harm()]).catch(String);
    await writeFile(join(folder, 'backend.yaml'), stringify(seen));
  }

  /** Ends every program and removes the folder. May be called at any time, also after a start that failed. */
  async close(): Promise<void> {
    await Promise.all(this.#all().map((program) => program.kill()));
    await this.#parts?.api.close();
    await this.#root?.remove();
    this.#parts = undefined;
  }
}

interface Parts {
  readonly api: Api;
  readonly disks: Disks;
  readonly audit: AuditLog;
  readonly credentials: Credentials;
  readonly etcd: string;
  readonly caFile: string;
}

const sidecarFlags: Readonly<Record<Sidecar, readonly string[]>> = {
  'csi-attacher': ['--retry-interval-max=10s'],
  'csi-provisioner': ['--retry-interval-max=10s', '--default-fstype=ext4', '--extra-create-metadata'],
  'csi-resizer': ['--retry-interval-max=10s'],
  'csi-snapshotter': ['--retry-interval-max=10s'],
  'snapshot-controller': ['--retry-interval-max=10s'],
};

function adminBinding(name: Sidecar): Manifest {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', name, namespace: 'csi' }],
  } as Manifest;
}

interface MachineParts {
  readonly root: string;
  readonly file: string;
  readonly kubeconfig: string;
  readonly flags: readonly string[];
  readonly logDir: string;
  readonly disks: Disks;
}

/** One machine: a kubelet, and its side of the driver. */
export class Machine {
  readonly name: string;
  readonly program: Program;
  readonly #spec: MachineSpec;
  readonly #parts: MachineParts;
  #generation = 1;

  constructor(spec: MachineSpec, parts: MachineParts) {
    this.name = spec.name;
    this.#spec = spec;
    this.#parts = parts;
    this.program = new Program(
      spec.name,
      {
        file: parts.file,
        args: [
          `--name=${spec.name}`,
          `--root=${parts.root}`,
          `--kubeconfig=${parts.kubeconfig}`,
          `--zone=${spec.zone ?? 'z1'}`,
          '--region=r1',
          ...parts.flags,
        ],
      },
      parts.logDir,
    );
  }

  /** Its name in the storage system, another one than the Node's; a replaced machine gets a new one. */
  get nodeId(): string {
    return this.#generation === 1 ? `i-${this.name}` : `i-${this.name}-${this.#generation}`;
  }

  async start(): Promise<void> {
    await mkdir(this.#parts.root, { recursive: true });
    await this.#announce();
    this.program.start();
  }

  /** A power cut: kubelet and containers are gone, and nothing is mounted any more; its attachments stay. */
  async powerOff(): Promise<void> {
    await this.program.kill();
    await this.#parts.disks.rebootNode(this.name);
  }

  /** Only the kubelet dies: the machine goes on writing, and nobody in the cluster can tell. */
  killKubelet(): Promise<void> {
    return this.program.kill();
  }

  /** A partition: nothing is heard from it, and it goes on writing. */
  hang(): void {
    this.program.hang();
  }

  comeBack(): void {
    this.program.goOn();
  }

  /** The same machine after a power cycle: a new boot id, nothing mounted, its attachments as they were. */
  async reboot(): Promise<void> {
    await this.powerOff();
    this.program.start();
  }

  /** Another machine of the same name: empty, with another id in the storage system. */
  async replace(): Promise<void> {
    await this.program.kill();
    await this.#parts.disks.removeNode(this.name);
    await rm(this.#parts.root, { recursive: true, force: true });
    this.#generation += 1;
    await this.start();
  }

  async #announce(): Promise<void> {
    const { zone = 'z1', limit } = this.#spec;
    await this.#parts.disks.addNode({
      driver: DRIVER,
      name: this.name,
      nodeId: this.nodeId,
      root: this.#parts.root,
      zone,
      region: 'r1',
      ...(limit === undefined ? {} : { limit }),
    });
  }
}
