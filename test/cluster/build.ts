/**
 * Builds the programs of the real test bed (see `go/README.md`) into a folder outside the repository, once for each state
 * of their sources. `--version 1.36` builds another control plane; `--print-dir` only prints the folder.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';

/** EX_CONFIG: the machine lacks what a build needs. Who can live without a test bed may go on. */
const NOT_SET_UP = 78;
const MODULE = join(import.meta.dirname, 'go');

interface Bed {
  /** The list of modules that it is built from, without its ending. */
  readonly modules: string;
  readonly packages: readonly string[];
  /** Whether the sidecars are part of it, and with them the files that they need in a cluster. */
  readonly sidecars: boolean;
}

const beds: Readonly<Record<string, Bed>> = {
  '1.37': { modules: 'go', packages: ['./cmd/...', 'tool'], sidecars: true },
  '1.36': { modules: 'go-1.36', packages: ['./cmd/controlplane'], sidecars: false },
};

interface Files {
  readonly module: string;
  readonly folder: string;
  /** Names in the folder, and where they go. A folder in place of a name takes all the custom resources of snapshots. */
  readonly file: RegExp;
  readonly to: (name: string) => string;
}

const CSI = 'github.com/kubernetes-csi';
const SNAPSHOTTER = `${CSI}/external-snapshotter/v8`;

const files: readonly Files[] = [
  {
    module: `${CSI}/external-snapshotter/client/v8`,
    folder: 'config/crd',
    file: /^snapshot\.storage\.k8s\.io_.*\.yaml$/,
    to: (name) => `crds/${name}`,
  },
  ...[
    { program: 'csi-attacher', module: `${CSI}/external-attacher/v4`, folder: 'deploy/kubernetes' },
    { program: 'csi-provisioner', module: `${CSI}/external-provisioner/v6`, folder: 'deploy/kubernetes' },
    { program: 'csi-resizer', module: `${CSI}/external-resizer/v2`, folder: 'deploy/kubernetes' },
    { program: 'csi-snapshotter', module: SNAPSHOTTER, folder: 'deploy/kubernetes/csi-snapshotter' },
    { program: 'snapshot-controller', module: SNAPSHOTTER, folder: 'deploy/kubernetes/snapshot-controller' },
  ].map(({ program, module, folder }) => ({
    module,
    folder,
    file: new RegExp(`^rbac(-${program})?\\.yaml$`),
    to: () => `rbac/${program}.yaml`,
  })),
];

class CannotBuild extends Error {
  readonly exit: number;

  constructor(why: string, exit: number) {
    super(why);
    this.exit = exit;
  }
}

/** Builds never fetch another Go by themselves, and never depend on a C compiler. */
const environment = { ...process.env, CGO_ENABLED: '0', GOTOOLCHAIN: 'local' };
const execute = promisify(execFile);

function folderOf(version: string): string {
  const home = process.env['K8S_STORAGE_TESTBED'] || join(homedir(), '.cache', 'k8s-storage-bot', 'testbed');
  return join(home, version);
}

async function numbersOf(file: string, pattern: RegExp): Promise<string> {
  const found = pattern.exec(await readFile(file, 'utf8'))?.[1];
  if (!found) throw new Error(`${file} has no line like ${pattern.source}`);
  return found;
}

function older(left: string, right: string): boolean {
  return left.localeCompare(right, 'en', { numeric: true }) < 0;
}

async function checkGo(needed: string): Promise<void> {
  const found = await execute('go', ['env', 'GOVERSION'], { env: environment, cwd: homedir() }).then(
    ({ stdout }) => stdout.trim().replace(/^go/, ''),
    (error: unknown) => {
      const why =
        error instanceof Error && 'code' in error && error.code === 'ENOENT' ? 'there is no `go`' : String(error);
      throw new CannotBuild(`the test bed is built with Go ${needed} or newer, and ${why} here`, NOT_SET_UP);
    },
  );
  if (older(found, needed))
    throw new CannotBuild(`the test bed is built with Go ${needed} or newer, and here is Go ${found}`, NOT_SET_UP);
}

async function stampOf(bed: Bed, args: readonly string[]): Promise<string> {
  const entries = await readdir(join(MODULE, 'cmd'), { recursive: true });
  const sources = entries.filter((name) => name.endsWith('.go') && !name.endsWith('_test.go'));
  const names = [`${bed.modules}.mod`, `${bed.modules}.sum`, ...sources.toSorted().map((name) => join('cmd', name))];
  const hash = createHash('sha256')
    .update(JSON.stringify(args))
    .update(await readFile(import.meta.filename));
  for (const name of names) hash.update(`\n${name}\n`).update(await readFile(join(MODULE, name)));
  return hash.digest('hex').slice(0, 16);
}

function go(args: readonly string[]): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const child = spawn('go', args, { cwd: MODULE, env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  child.on('error', reject);
  child.on('exit', (code) => (code === 0 ? resolve() : reject(new CannotBuild('go build failed, see above', 1))));
  return promise;
}

async function copyFiles(into: string): Promise<void> {
  for (const { module, folder, file, to } of files) {
    const { stdout } = await execute('go', ['list', '-mod=readonly', '-m', '-f', '{{.Dir}}', module], {
      cwd: MODULE,
      env: environment,
    });
    const from = join(stdout.trim(), folder);
    const names = (await readdir(from)).filter((name) => file.test(name));
    if (names.length === 0) throw new Error(`${module} has no ${file.source} in ${folder}`);
    for (const name of names) {
      const target = join(into, to(name));
      await mkdir(join(target, '..'), { recursive: true });
      await copyFile(join(from, name), target);
      // Module caches are read-only, and a copy that cannot be removed is a nuisance.
      await chmod(target, 0o644);
    }
  }
}

/** How long builds of other sources stay: a suite of another checkout may run on them. */
const OLD_MS = 86_400_000;

/** The folder of a build is complete before the link names it; old ones go away. */
async function put(built: string, home: string, stamp: string): Promise<void> {
  const place = join(home, stamp);
  await rm(place, { recursive: true, force: true });
  await rename(built, place);
  await pointTo(home, stamp);
  for (const name of await readdir(home)) {
    if (!/^[0-9a-f]{16}$/.test(name) || name === stamp) continue;
    const { mtimeMs } = await stat(join(home, name));
    if (Date.now() - mtimeMs > OLD_MS) await rm(join(home, name), { recursive: true, force: true });
  }
}

async function pointTo(home: string, stamp: string): Promise<void> {
  const link = join(home, `link.${process.pid}`);
  await symlink(stamp, link);
  await rename(link, join(home, 'bin'));
}

async function build(version: string, bed: Bed): Promise<void> {
  const modules = join(MODULE, `${bed.modules}.mod`);
  const kubernetes = await numbersOf(modules, /^\s*k8s\.io\/kubernetes (v[\d.]+)$/m);
  const args = [
    'build',
    '-mod=readonly',
    `-modfile=${bed.modules}.mod`,
    '-trimpath',
    '-buildvcs=false',
    // Without the version, /version of the API server names none that exists.
    `-ldflags=-s -w -X k8s.io/component-base/version.gitVersion=${kubernetes}`,
  ];
  const home = folderOf(version);
  const stamp = await stampOf(bed, args);
  const current = await readlink(join(home, 'bin')).catch(() => undefined);
  const isBuilt = (await stat(join(home, stamp, 'controlplane')).catch(() => undefined)) !== undefined;
  if (isBuilt) {
    if (current === undefined || basename(current) !== stamp) await pointTo(home, stamp);
    return;
  }

  await checkGo(await numbersOf(modules, /^go ([\d.]+)$/m));
  process.stderr.write(`building the test bed ${version} into ${home}; the first time takes about ten minutes\n`);
  const built = join(home, `new.${process.pid}`);
  try {
    await mkdir(built, { recursive: true });
    await go([...args, '-o', `${built}/`, ...bed.packages]);
    if (bed.sidecars) await copyFiles(built);
    await put(built, home, stamp);
  } finally {
    await rm(built, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: { version: { type: 'string', default: '1.37' }, 'print-dir': { type: 'boolean', default: false } },
});
const bed = beds[values.version];

if (!bed) {
  process.stderr.write(`there is no test bed ${values.version}: choose one of ${Object.keys(beds).join(', ')}\n`);
  process.exitCode = 64;
} else if (values['print-dir']) {
  process.stdout.write(`${join(folderOf(values.version), 'bin')}\n`);
} else {
  try {
    await build(values.version, bed);
  } catch (error) {
    if (!(error instanceof CannotBuild)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = error.exit;
  }
}
