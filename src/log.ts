import pino from 'pino';
import type { Log } from './ports.ts';

/** Keys whose values never reach a log, wherever they stand. */
const secretKeys = ['token', 'botToken', 'appToken', 'signingSecret', 'authorization', 'password', 'connectionString'];
const secretText =
  /xox[abprs]-[\w-]+|xapp-[\w-]+|Bearer\s+[\w.~+/=-]+|eyJ[\w-]+\.[\w-]+\.[\w-]+|:\/\/[^\s:/@]+:[^\s/@]+@/g;

/**
 * JSON lines on stdout. Secrets are taken out here and nowhere else: by key, and, as a second line, by the look of the
 * text (Slack tokens, bearer tokens, JWTs, passwords in URLs).
 */
export function createLog(level: string, destination?: pino.DestinationStream): Log {
  const logger = pino(
    {
      level,
      base: null,
      redact: { paths: [...secretKeys, ...secretKeys.map((key) => `*.${key}`)], censor: '[redacted]' },
      formatters: { level: (label) => ({ level: label }) },
    },
    destination ?? pino.destination({ fd: 1, sync: true }),
  );
  return {
    debug: (message, data) => logger.debug(clean(data), message),
    info: (message, data) => logger.info(clean(data), message),
    warn: (message, data) => logger.warn(clean(data), message),
    error: (message, data) => logger.error(clean(data), message),
  };
}

function clean(data: Readonly<Record<string, unknown>> | undefined): Readonly<Record<string, unknown>> {
  if (!data) return {};
  return Object.fromEntries(
    Object.entries(data).map(([key, value]) => [
      key,
      typeof value === 'string' ? value.replace(secretText, '[redacted]') : value,
    ]),
  );
}
