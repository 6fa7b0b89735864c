import { execFile } from 'node:child_process';
import { createServer } from 'node:net';
import { promisify } from 'node:util';

const run = promisify(execFile);
const NAMESPACE = 'k8s-storage-slack-';
const LINK = 'k8sslk';

/** A network namespace with one cable to this machine, and nothing else at its end. */
export interface Network {
  /** Address of this machine's end of the cable. */
  readonly host: string;
  /** Address of the end inside. */
  readonly guest: string;
  /** What to put before a program's command line so that it runs inside. */
  readonly inside: readonly [file: string, ...args: string[]];
  /** Where a packet from inside to an address would go; undefined: nowhere. */
  routeTo(address: string): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * Makes the namespace: the names carry this process's id, the addresses come from 198.18.0.0/15 (RFC 2544, never routed
 * in the internet). What a killed run left behind goes first. Needs root and iproute2; without them it throws, because a
 * walk that was not made may not look like one that was.
 */
export async function openNetwork(): Promise<Network> {
  const namespace = `${NAMESPACE}${process.pid}`;
  const [outer, inner] = [`${LINK}${process.pid}`, 'uplink'];
  const { host, guest } = addressesOf(process.pid);
  const network: Network = {
    host,
    guest,
    inside: ['ip', 'netns', 'exec', namespace],
    async routeTo(address) {
      const { stdout } = await run('ip', ['-n', namespace, 'route', 'get', address]).catch(() => ({ stdout: '' }));
      return stdout === '' ? undefined : stdout.split('\n', 1)[0]?.trim();
    },
    close: () => remove(process.pid),
  };
  try {
    await removeLeftovers();
    await ip('netns', 'add', namespace);
    await ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner, 'netns', namespace);
    await ip('addr', 'add', `${host}/30`, 'dev', outer);
    await ip('link', 'set', outer, 'up');
    await ip('-n', namespace, 'addr', 'add', `${guest}/30`, 'dev', inner);
    await ip('-n', namespace, 'link', 'set', inner, 'up');
    await ip('-n', namespace, 'link', 'set', 'lo', 'up');
    return network;
  } catch (error) {
    await network.close();
    throw new Error('no network namespace can be made here; it needs root and iproute2', { cause: error });
  }
}

/** A port of an address that nobody listens on now. */
export async function freePort(host: string): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, host, resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('the listener has no port');
  return address.port;
}

/** The two usable addresses of one of the range's /30 nets, by process id. */
function addressesOf(pid: number): { readonly host: string; readonly guest: string } {
  const net = (pid % 2 ** 15) * 4;
  const prefix = `198.${18 + (net >> 16)}.${(net >> 8) & 255}`;
  return { host: `${prefix}.${(net & 255) + 1}`, guest: `${prefix}.${(net & 255) + 2}` };
}

async function removeLeftovers(): Promise<void> {
  const { stdout } = await run('ip', ['netns', 'list']);
  for (const [, pid] of stdout.matchAll(new RegExp(`^${NAMESPACE}([0-9]+)\\b`, 'gm'))) {
    if (Number(pid) === process.pid || !isAlive(Number(pid))) await remove(Number(pid));
  }
}

/** Ends what still runs inside, then removes the namespace; the cable goes with it. Nothing there is fine. */
async function remove(pid: number): Promise<void> {
  const namespace = `${NAMESPACE}${pid}`;
  const { stdout } = await run('ip', ['netns', 'pids', namespace]).catch(() => ({ stdout: '' }));
  for (const inside of stdout.split('\n').filter((line) => line !== '')) end(Number(inside));
  await run('ip', ['link', 'del', `${LINK}${pid}`]).catch(() => undefined);
  await run('ip', ['netns', 'del', namespace]).catch(() => undefined);
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function ip(...args: readonly string[]): Promise<void> {
  await run('ip', args);
}
