import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** How a program is started: its file, its arguments, and what it finds in its environment besides PATH. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const LAST_LINES = 30;

/**
 * One program of a bed. The kernel kills it when the process that started it dies, in whatever way (`setpriv
 * --pdeathsig`), so nothing is left of a test run that was killed. It never gets a signal by name, only by its pid.
 */
export class Program {
  readonly name: string;
  readonly logFile: string;
  readonly #command: Command;
  #child: ChildProcess | undefined;
  #gone: Promise<void> = Promise.resolve();

  constructor(name: string, command: Command, logDir: string) {
    this.name = name;
    this.#command = command;
    this.logFile = join(logDir, `${name}.log`);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isRunning(): boolean {
    return this.#child !== undefined;
  }

  /** Starts it, again after a stop; its log goes on in the same file. */
  start(): void {
    if (this.#child) throw new Error(`${this.name} runs already`);
    const log = openSync(this.logFile, 'a');
    const { file, args, environment } = this.#command;
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', file, ...args], {
      stdio: ['ignore', log, log],
      env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', ...environment },
    });
    closeSync(log);
    this.#child = child;
    this.#gone = new Promise((resolve) => {
      const forget = () => {
        if (this.#child === child) this.#child = undefined;
        resolve();
      };
      child.once('exit', forget);
      child.once('error', forget);
    });
  }

  /** Ends it at once, as a crash or a power cut would; resolves when it is gone. */
  async kill(): Promise<void> {
    this.#child?.kill('SIGKILL');
    await this.#gone;
  }

  /** Holds it, as a network partition or a frozen machine would. */
  hang(): void {
    this.#signal('SIGSTOP');
  }

  goOn(): void {
    this.#signal('SIGCONT');
  }

  async restart(): Promise<void> {
    await this.kill();
    this.start();
  }

  lastLines(): string {
    const lines = readFileSync(this.logFile, 'utf8').trimEnd().split('\n');
    return lines.slice(-LAST_LINES).join('\n');
  }

  #signal(signal: NodeJS.Signals): void {
    if (!this.#child?.kill(signal)) throw new Error(`${this.name} does not run`);
  }
}
