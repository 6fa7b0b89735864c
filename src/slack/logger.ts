import { type Logger, LogLevel } from '@slack/web-api';
import type { Log } from '../ports.ts';

/**
 * Slack's packages log through this. Their debug lines hold whole bodies, so those are dropped; the rest are sentences
 * that this process did not write, hence data beside a constant message.
 */
export function slackLogger(log: Log): Logger {
  const says = (parts: readonly unknown[]) => ({ says: parts.map(textOf).join(' ').slice(0, 500) });
  return {
    debug: () => undefined,
    info: (...parts: unknown[]) => log.debug('slack library', says(parts)),
    warn: (...parts: unknown[]) => log.warn('slack library', says(parts)),
    error: (...parts: unknown[]) => log.warn('slack library reports an error', says(parts)),
    setLevel: () => undefined,
    getLevel: () => LogLevel.INFO,
    setName: () => undefined,
  };
}

function textOf(part: unknown): string {
  if (part instanceof Error) return part.message;
  return typeof part === 'string' ? part : (JSON.stringify(part) ?? '');
}
