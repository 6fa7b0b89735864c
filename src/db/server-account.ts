import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { Refused } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';

const execute = promisify(execFile);

/** Under whose account the server runs. */
export interface Account {
  /** Absent when it is the account of this process. */
  readonly ids: { readonly uid: number; readonly gid: number } | undefined;
  /** The `setpriv` that must help it past folders that only root may enter; undefined when it needs no help. */
  readonly setpriv: string | undefined;
}

/** Accounts without rights that a root process borrows, best first. PostgreSQL refuses to run as root. */
const ACCOUNTS = ['postgres', 'nobody'];
const SETPRIV = ['/usr/bin/setpriv', '/bin/setpriv'];

/** The account of this process; for root another one, which must be able to reach these paths. */
export async function pickAccount(paths: readonly string[]): Promise<Account> {
  if (process.getuid?.() !== 0) return { ids: undefined, setpriv: undefined };
  for (const name of ACCOUNTS) {
    const ids = await idsOf(name);
    if (!ids) continue;
    const blocked = await firstBlocked(paths, ids);
    if (blocked === undefined) return { ids, setpriv: undefined };
    const setpriv = SETPRIV.find((file) => existsSync(file) && isExecutable(file));
    if (setpriv !== undefined) return { ids, setpriv };
    throw new Refused({
      en: en`the embedded database cannot run as root, and the account ${name} may not enter ${blocked}; set DATA_DIR and install where it may (such as /opt and /var/lib), start as another user, or set DATABASE_URL`,
      zh: zh`内嵌数据库不能以 root 身份运行，而账户 ${name} 无法进入 ${blocked}；请将 DATA_DIR 和安装位置设在它可以进入的地方（例如 /opt 和 /var/lib），以其他用户启动，或设置 DATABASE_URL`,
    });
  }
  throw new Refused({
    en: en`the embedded database cannot run as root, and this system has no account ${ACCOUNTS.join(' or ')}; start as another user, or set DATABASE_URL`,
    zh: zh`内嵌数据库不能以 root 身份运行，而这个系统没有账户 ${ACCOUNTS.join(' 或 ')}；请以其他用户启动，或设置 DATABASE_URL`,
  });
}

/**
 * How to start a program under that account. With `setpriv` it keeps the one capability of passing through folders of
 * root: PostgreSQL only looks at the user id. Without the secure bit the capability would not count in access(2), by
 * which initdb looks for its companions (capabilities(7)).
 */
export function commandAs(account: Account, file: string, args: readonly string[]) {
  // The server has no use for our environment, which holds tokens.
  const env = { LC_ALL: 'C', LC_MESSAGES: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };
  if (!account.ids) return { file, args: [...args], options: { env } };
  const { uid, gid } = account.ids;
  if (account.setpriv === undefined) return { file, args: [...args], options: { env, uid, gid, cwd: '/' } };
  const capability = '+dac_override';
  const flags = [
    '--securebits=+no_setuid_fixup',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    `--inh-caps=${capability}`,
    `--ambient-caps=${capability}`,
  ];
  return { file: account.setpriv, args: [...flags, file, ...args], options: { env, cwd: '/' } };
}

async function idsOf(name: string): Promise<{ readonly uid: number; readonly gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all(['-u', '-g'].map((flag) => execute('id', [flag, name], { timeout: 5_000 })));
    const ids = { uid: Number.parseInt(uid?.stdout ?? '', 10), gid: Number.parseInt(gid?.stdout ?? '', 10) };
    return Number.isInteger(ids.uid) && Number.isInteger(ids.gid) && ids.uid !== 0 ? ids : undefined;
  } catch {
    return undefined;
  }
}

/** The first folder above a path that the account may not enter. The last folder of each path is opened by us. */
async function firstBlocked(
  paths: readonly string[],
  ids: { readonly uid: number; readonly gid: number },
): Promise<string | undefined> {
  for (const path of paths) {
    for (let folder = dirname(path); ; folder = dirname(folder)) {
      const { mode, uid, gid } = await stat(folder);
      const needed = uid === ids.uid ? 0o100 : gid === ids.gid ? 0o010 : 0o001;
      if ((mode & needed) === 0) return folder;
      if (folder === dirname(folder)) break;
    }
  }
  return undefined;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
