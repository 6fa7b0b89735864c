import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleepFor } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../', import.meta.url));
const READY_MS = 60_000;
const STOP_MS = 25_000;
const LAST_LINES_MS = 1000;

/** How a process ended: an exit code, or the signal that killed it. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One JSON line of a process's log. */
export type LogLine = Readonly<Record<string, unknown>> & { readonly msg: string };

/** A started process whose output is kept. */
export interface Started {
  readonly pid: number;
  /** Log lines of stdout up to now. */
  readonly logs: readonly LogLine[];
  /** Everything that was written to stdout and stderr up to now, for a failing test's message. */
  output(): string;
  /** What was written to stdout alone: a command's data. */
  data(): string;
  /** Resolves when the process has ended, in whatever way. Never rejects. */
  readonly ended: Promise<Ended>;
  /** The first log line with this message, already written or still to come; rejects at the deadline (ms) or the end. */
  logged(message: string, deadline?: number): Promise<LogLine>;
  /** Sends a signal to this one process, by its pid. Nothing happens when it has ended. */
  kill(signal: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL when that does not end it within 25 s. May be called twice, and after the end. */
  stop(): Promise<Ended>;
}

/** A running bot, `node bin/start.mjs` in a process of its own. */
export interface BotProcess extends Started {
  /** Where it listens, as its `ready` line says it: the playground's page or the bot's own listener. */
  readonly address: string;
}

/** The environment of a child: what is handed in, and of this process's own no more than it needs to run at all. */
export type ChildEnvironment = Readonly<Record<string, string>>;

/**
 * Starts the bot and waits for its `ready` line. Nothing of this process's own settings reaches it: the environment is
 * the one handed in, with `PORT=0`, `HOST=127.0.0.1` and `NODE_ENV=test` when they are not set. Throws with the
 * process's output when it ends before it is ready; then nothing is left running.
 */
export async function startBot(environment: ChildEnvironment): Promise<BotProcess> {
  const started = startNode(['bin/start.mjs'], { PORT: '0', HOST: '127.0.0.1', NODE_ENV: 'test', ...environment });
  try {
    const { address } = z.object({ address: z.url() }).parse(await started.logged('ready', READY_MS));
    return { ...started, address };
  } catch (error) {
    started.kill('SIGKILL');
    await started.ended;
    throw error;
  }
}

/** Runs the `k8s-storage` command to its end, at most `deadline` ms. */
export async function runCli(
  args: readonly string[],
  environment: ChildEnvironment = {},
  deadline = 60_000,
): Promise<{ readonly code: number | null; readonly output: string; readonly data: string }> {
  const started = startNode(['bin/k8s-storage.mjs', ...args], environment);
  const timer = setTimeout(() => started.kill('SIGKILL'), deadline);
  const { code } = await started.ended;
  clearTimeout(timer);
  return { code, output: started.output(), data: started.data() };
}

/** Starts this repository's `node` on a script, with the repository as its working directory. */
export function startNode(args: readonly string[], environment: ChildEnvironment): Started {
  return startProgram(process.execPath, args, { PATH: ownPath(), HOME: '/nonexistent', ...environment });
}

/** Starts any program and keeps its output. */
export function startProgram(file: string, args: readonly string[], environment: ChildEnvironment): Started {
  const child = spawn(file, args, { cwd: root, env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
  return watch(child);
}

/** PATH with the folder of the running Node first, so that a child never meets another one. */
function ownPath(): string {
  return `${root}node_modules/.bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`;
}

function watch(child: ChildProcess): Started {
  const lines: string[] = [];
  const data: string[] = [];
  const logs: LogLine[] = [];
  const waiting = new Set<() => void>();
  const note = (line: string) => {
    lines.push(line);
    const log = parseLine(line);
    if (log) logs.push(log);
    for (const look of waiting) look();
  };
  read(child.stdout, (line) => {
    data.push(line);
    note(line);
  });
  read(child.stderr, note);
  let end: Ended | undefined;
  const ended = new Promise<Ended>((resolve) => {
    const finish = (result: Ended) => {
      end ??= result;
      resolve(end);
      for (const look of waiting) look();
    };
    child.once('error', (error) => {
      note(error.message);
      finish({ code: null, signal: null });
    });
    // `close` comes after the last line, but waits for whoever else holds the pipes: a killed process may leave such behind.
    child.once('close', (code, signal) => finish({ code, signal }));
    child.once('exit', (code, signal) => setTimeout(() => finish({ code, signal }), LAST_LINES_MS).unref());
  });
  const kill = (signal: NodeJS.Signals) => {
    if (!end) child.kill(signal);
  };

  return {
    pid: child.pid ?? -1,
    logs,
    output: () => lines.join('\n'),
    data: () => data.join('\n'),
    ended,
    kill,

    logged(message, deadline = 30_000) {
      return new Promise((resolve, reject) => {
        const settle = (act: () => void) => {
          clearTimeout(timer);
          waiting.delete(look);
          act();
        };
        const fail = (why: string) =>
          settle(() => reject(new Error(`${why} before it said “${message}”:\n${lines.slice(-40).join('\n')}`)));
        const look = () => {
          const found = logs.find((line) => line.msg === message);
          if (found) settle(() => resolve(found));
          else if (end) fail(`the process ended (${end.signal ?? end.code})`);
        };
        const timer = setTimeout(() => fail(`${deadline} ms went by`), deadline);
        waiting.add(look);
        look();
      });
    },

    async stop() {
      kill('SIGTERM');
      const late = await Promise.race([ended, sleepFor(STOP_MS, 'late' as const, { ref: false })]);
      if (late === 'late') kill('SIGKILL');
      return ended;
    },
  };
}

function read(stream: Readable | null, take: (line: string) => void): void {
  if (stream) createInterface({ input: stream }).on('line', take);
}

const logLine = z.looseObject({ msg: z.string() });

function parseLine(line: string): LogLine | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    return logLine.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
