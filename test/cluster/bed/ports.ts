import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range that the kernel takes for outgoing connections, so that none of these is in the way a moment later. */
const LOWEST = 12_000;
const HIGHEST = 32_000;

const taken = new Set<number>();

/** Free loopback ports, never twice the same in one process; drawn at random, so that beds side by side hardly meet. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (taken.has(port) || !(await isFree(port))) continue;
    taken.add(port);
    ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
