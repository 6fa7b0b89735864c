import type { CliDeps } from './deps.ts';
import { Exit } from './deps.ts';
import { buildProgram } from './program.ts';

/** Runs one word of the command line and gives its exit code. Nothing is thrown: what went wrong is one line on stderr. */
export async function runWord(args: readonly string[], deps: CliDeps): Promise<number> {
  try {
    await buildProgram(deps).parseAsync([...args], { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof Exit) {
      if (error.message !== '') deps.err(`${error.message}\n`);
      return error.code;
    }
    if (error instanceof Error && 'exitCode' in error && typeof error.exitCode === 'number')
      return error.exitCode === 0 ? 0 : 2;
    deps.err(`${error instanceof Error ? error.message : String(error)}\n`);
    return 2;
  }
}

/** The `k8s-storage` command: wires the command line's own edges, lazily. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  const { cliDeps } = await import('../wire-cli.ts');
  return runWord(args, cliDeps());
}
