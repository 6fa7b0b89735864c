import { type Config, environment, readConfig, SettingError } from './config.ts';
import { Refused, Transient } from './domain/errors.ts';
import { createLog } from './log.ts';
import type { Log } from './ports.ts';
import { type Running, start } from './wire.ts';

const EXIT_SETTING = 78;
const STOP_WITHIN_MS = 20_000;

/** The process: reads the settings, starts the roles, says `ready`, and stops well on SIGTERM and SIGINT. */
export async function main(): Promise<void> {
  const config = settingsOrExit();
  const log = createLog(config.logLevel);
  // A bug in one request must not take the others down; it is loud, and the sweep takes up what it left.
  process.on('unhandledRejection', (reason) =>
    log.error('unhandled rejection', {
      reason: reason instanceof Error ? (reason.stack ?? reason.message) : String(reason),
    }),
  );
  const running = await startOrExit(config, log);
  log.info('ready', { role: config.role, address: running.address });
  if (config.mode === 'playground') process.stderr.write(`\n  The playground is at ${running.address}\n\n`);
  const reason = await Promise.race([running.failed, signalled()]);
  log.info('stopping', { reason });
  const force = setTimeout(() => process.exit(1), STOP_WITHIN_MS);
  await running.close();
  clearTimeout(force);
  process.exit(reason === 'SIGTERM' || reason === 'SIGINT' ? 0 : 1);
}

function settingsOrExit(): Config {
  try {
    return readConfig(environment());
  } catch (error) {
    if (error instanceof SettingError) exitWith(error.message);
    throw error;
  }
}

async function startOrExit(config: Config, log: Log): Promise<Running> {
  try {
    if (config.mode === 'bot') return await start(config, log);
    const { startPlayground } = await import('./playground/start.ts');
    return await startPlayground(config, log);
  } catch (error) {
    if (error instanceof SettingError || error instanceof Refused || error instanceof Transient)
      exitWith(error.message);
    throw error;
  }
}

function exitWith(line: string): never {
  process.stderr.write(`${line}\n`);
  process.exit(EXIT_SETTING);
}

function signalled(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => resolve(name));
  });
}
