import { runWord } from '../../src/cli/main.ts';
import type { Catalogue } from '../../src/diagnose.ts';
import { faults } from '../../src/faults/index.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { readFiles } from '../../src/kube/files.ts';
import { createReader } from '../../src/kube/reader.ts';
import { toPng, toSvg } from '../../src/picture/draw.ts';
import type { UsageSource } from '../../src/ports.ts';
import { remediations } from '../../src/remediations/index.ts';
import type { KubeServer } from './kube-server.ts';

export const catalogue: Catalogue = { faults, remediations };

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  readonly files: ReadonlyMap<string, string | Uint8Array>;
}

/** Runs one word of the command line with the real reader against a server, or with files alone. */
export async function runCli(
  args: readonly string[],
  server?: KubeServer,
  now = Date.parse('2026-11-30T12:00:00Z'),
  usage?: UsageSource,
): Promise<Ran> {
  let out = '';
  let err = '';
  const files = new Map<string, string | Uint8Array>();
  const code = await runWord(args, {
    out: (text) => {
      out += text;
    },
    err: (text) => {
      err += text;
    },
    now: () => now,
    timeZone: () => 'UTC',
    catalogue,
    readFiles: (paths, options) => readFiles(paths, { ...options, clock: () => now }),
    openReader: (_context, onRaw) => {
      if (!server) return Promise.reject(new Error('no cluster here'));
      return Promise.resolve(
        createReader(new KubeClient(server.config), { now: () => now, usage, ...(onRaw ? { onRaw } : {}) }),
      );
    },
    openStore: () => Promise.reject(new Error('no database here')),
    writeFile: (path, content) => {
      files.set(path, content);
      return Promise.resolve();
    },
    draw: (chain, format) => (format === 'png' ? toPng(chain) : toSvg(chain)),
  });
  return { code, out, err, files };
}
