import ms from 'ms';
import { z } from 'zod';
import { parseQuietHours, type QuietHours } from './domain/quiet-hours.ts';

export const roles = ['all', 'web', 'worker', 'remediator'] as const;
export type Role = (typeof roles)[number];

export interface Config {
  /** `playground`: no Slack token is set, so Slack, cluster and backend are simulated on this machine. */
  readonly mode: 'playground' | 'bot';
  readonly role: Role;
  readonly host: string;
  readonly port: number;
  readonly slack: {
    readonly botToken: string;
    readonly signingSecret: string | undefined;
    readonly appToken: string | undefined;
    readonly apiUrl: string | undefined;
    /** Who is told when a channel cannot be written to. */
    readonly admin: string | undefined;
  };
  readonly databaseUrl: string | undefined;
  readonly dataDir: string;
  readonly redisUrl: string | undefined;
  readonly kube: {
    readonly config: string | undefined;
    readonly context: string | undefined;
    readonly actConfig: string | undefined;
    readonly clusters: readonly string[];
  };
  readonly approvalTtlMs: number;
  readonly executionTtlMs: number;
  readonly settleMs: number;
  readonly logLevel: string;
  readonly language: 'en' | 'zh';
  readonly faults: string | undefined;
  readonly alerts: {
    /** Where incidents that nobody asked for have their threads. */
    readonly channel: string | undefined;
    readonly token: string | undefined;
    readonly pagerdutySecrets: readonly string[];
    /** Only what is critical begins a thread then. */
    readonly quietHours: QuietHours | undefined;
  };
  /** Period of the bot's own look at every cluster; 0 is never. */
  readonly scanIntervalMs: number;
  /** Where usage is read, with its credentials; never logged. */
  readonly prometheusUrl: string | undefined;
}

/** A setting that is wrong or missing: the process ends with exit code 78 and this one line. */
export class SettingError extends Error {
  override readonly name = 'SettingError';
}

/** Settings that are named and not built: set, they are refused and never ignored. */
const notYet: Readonly<Record<string, string>> = {
  POLICY_FILE: 'the built-in approval policy is the only one so far',
};

const duration = z.string().transform((text, context) => {
  const value = /^\d+(ms|s|m|h|d)$/.test(text) ? ms(text as ms.StringValue) : undefined;
  if (value === undefined) {
    context.addIssue({ code: 'custom', message: 'is no duration; write something like 30s, 15m or 2h' });
    return z.NEVER;
  }
  return value;
});

const schema = z.object({
  SLACK_BOT_TOKEN: z.string().startsWith('xoxb-', 'is no bot token; it begins with xoxb-').optional(),
  SLACK_SIGNING_SECRET: z
    .string()
    .min(16, 'is too short to be a signing secret; copy it from the app’s Basic Information')
    .optional(),
  SLACK_APP_TOKEN: z.string().startsWith('xapp-', 'is no app-level token; it begins with xapp-').optional(),
  SLACK_API_URL: z
    .url('is no URL; write something like https://slack.com/api/')
    .endsWith('/api/', 'must end in /api/')
    .optional(),
  SLACK_INCIDENT_CHANNEL: z
    .string()
    .regex(
      /^([CG][A-Z0-9]{6,}|#?[\p{L}\p{N}_-]{1,80})$/u,
      'is no channel; write its id or its name, such as #incidents',
    )
    .optional(),
  SLACK_ADMIN: z
    .string()
    .regex(/^[UW][A-Z0-9]{6,}$/, 'is no user id; copy the member ID from the profile in Slack, it begins with U')
    .optional(),
  QUIET_HOURS: z
    .string()
    .transform((text, context) => {
      const hours = parseQuietHours(text);
      if (hours) return hours;
      context.addIssue({
        code: 'custom',
        message: 'is no span of hours; write something like 22:00-07:00 Europe/Berlin',
      });
      return z.NEVER;
    })
    .optional(),
  ALERT_TOKEN: z.string().min(16, 'is too short to keep anybody out; write 32 random characters').optional(),
  PAGERDUTY_SECRETS: z
    .string()
    .transform((text) => listOf(text))
    .refine(
      (secrets) => secrets.every((secret) => secret.length >= 16),
      'holds one that is too short; copy them from PagerDuty',
    )
    .default([]),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(ql)?:\/\//, 'is no PostgreSQL URL; it begins with postgres://')
    .optional(),
  PROMETHEUS_URL: z
    .url({ protocol: /^https?$/, error: 'is no URL; write something like https://prometheus.example.com' })
    .optional(),
  DATA_DIR: z.string().min(1).default('./.data'),
  REDIS_URL: z
    .string()
    .regex(/^rediss?:\/\//, 'is no Redis URL; it begins with redis:// or rediss://')
    .optional(),
  SCAN_INTERVAL: z
    .literal('0')
    .transform(() => 0)
    .or(duration)
    .default(ms('5m'))
    .refine((value) => value === 0 || value >= ms('10s'), 'is too short; write 10s or more, or 0 for never'),
  KUBECONFIG: z.string().optional(),
  KUBE_CONTEXT: z.string().optional(),
  KUBECONFIG_ACT: z.string().optional(),
  CLUSTERS: z.string().optional(),
  APPROVAL_TTL: duration.default(ms('15m')),
  EXECUTION_TTL: duration.default(ms('10m')),
  SETTLE: duration.optional(),
  ROLE: z.enum(roles, `is no role; write one of ${roles.join(', ')}`).default('all'),
  PORT: z
    .string()
    .regex(/^\d{1,5}$/, 'is no port; write a number from 0 to 65535')
    .transform(Number)
    .refine((port) => port <= 65_535, 'is no port; write a number from 0 to 65535')
    .default(3000),
  HOST: z.string().optional(),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'is no log level; write one of trace, debug, info, warn, error',
    )
    .default('info'),
  BOT_LANGUAGE: z.enum(['en', 'zh'], 'is not spoken; write en or zh').default('en'),
  NODE_ENV: z.string().optional(),
  K8S_STORAGE_FAULTS: z.string().optional(),
});

/**
 * Reads the settings of contracts.md from an environment. An empty value counts as not set. Throws `SettingError` with
 * one line that names the setting, what is wrong with it and what to write.
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  for (const [name, why] of Object.entries(notYet)) {
    if (set[name] !== undefined) throw new SettingError(`${name} is set, but ${why}; remove it`);
  }
  const parsed = schema.safeParse(set);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new SettingError(`${issue?.path.join('.')} ${issue?.message}`);
  }
  const env = parsed.data;
  const mode = env.SLACK_BOT_TOKEN === undefined ? 'playground' : 'bot';
  check(env, mode);
  return {
    mode,
    role: env.ROLE,
    host: env.HOST ?? (mode === 'playground' ? '127.0.0.1' : '0.0.0.0'),
    port: env.PORT,
    slack: {
      botToken: env.SLACK_BOT_TOKEN ?? '',
      signingSecret: env.SLACK_SIGNING_SECRET,
      appToken: env.SLACK_APP_TOKEN,
      apiUrl: env.SLACK_API_URL,
      admin: env.SLACK_ADMIN,
    },
    databaseUrl: env.DATABASE_URL,
    dataDir: env.DATA_DIR,
    redisUrl: env.REDIS_URL,
    kube: {
      config: env.KUBECONFIG,
      context: env.KUBE_CONTEXT,
      actConfig: env.KUBECONFIG_ACT,
      clusters: listOf(env.CLUSTERS ?? ''),
    },
    approvalTtlMs: env.APPROVAL_TTL,
    executionTtlMs: env.EXECUTION_TTL,
    // In the playground a person watches: the goal need not hold for a minute.
    settleMs: env.SETTLE ?? (mode === 'playground' ? ms('5s') : ms('60s')),
    alerts: {
      channel: env.SLACK_INCIDENT_CHANNEL,
      token: env.ALERT_TOKEN,
      pagerdutySecrets: env.PAGERDUTY_SECRETS,
      quietHours: env.QUIET_HOURS,
    },
    scanIntervalMs: env.SCAN_INTERVAL,
    logLevel: env.LOG_LEVEL,
    language: env.BOT_LANGUAGE,
    faults: env.K8S_STORAGE_FAULTS,
    prometheusUrl: env.PROMETHEUS_URL,
  };
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

function check(env: z.infer<typeof schema>, mode: Config['mode']): void {
  if (env.K8S_STORAGE_FAULTS !== undefined && env.NODE_ENV !== 'test') {
    throw new SettingError('K8S_STORAGE_FAULTS is for tests and needs NODE_ENV=test; remove it');
  }
  if (env.ROLE !== 'all' && env.DATABASE_URL === undefined) {
    throw new SettingError(
      `DATABASE_URL is missing; a process with ROLE=${env.ROLE} shares one with the others, write postgres://…`,
    );
  }
  if (mode === 'playground') {
    if (env.ROLE !== 'all')
      throw new SettingError(
        `ROLE=${env.ROLE} needs a Slack workspace; set SLACK_BOT_TOKEN, or remove ROLE for the playground`,
      );
    return;
  }
  if (env.SLACK_SIGNING_SECRET === undefined && env.SLACK_APP_TOKEN === undefined) {
    throw new SettingError('SLACK_SIGNING_SECRET is missing; set it for HTTP, or SLACK_APP_TOKEN for Socket Mode');
  }
}

/** The environment of this process, after the `.env` file of the working directory. Nothing else reads it. */
export function environment(): Readonly<Record<string, string | undefined>> {
  try {
    process.loadEnvFile();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
      throw new SettingError('.env cannot be read; check its permissions', { cause: error });
  }
  return process.env;
}
