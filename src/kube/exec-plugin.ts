import { spawn } from 'node:child_process';
import { z } from 'zod';
import { Transient } from '../domain/errors.ts';
import { en, type Text, zh } from '../domain/text.ts';
import type { PluginSpec } from './config.ts';

export interface PluginCredential {
  readonly token: string | undefined;
  readonly certificate: string | undefined;
  readonly key: string | undefined;
  /** Milliseconds since 1970; undefined when it does not say, which means until it is refused. */
  readonly expiresAt: number | undefined;
}

const LIMIT_MS = 10_000;
const SKEW_MS = 30_000;
const MOST_BYTES = 1024 * 1024;

const answer = z.object({
  kind: z.literal('ExecCredential'),
  status: z.object({
    token: z.string().optional(),
    clientCertificateData: z.string().optional(),
    clientKeyData: z.string().optional(),
    expirationTimestamp: z.string().optional(),
  }),
});

/**
 * A kubeconfig's credential plugin: run with nothing of our environment, for 10 seconds at most, once for all who wait,
 * and again half a minute before its answer expires.
 */
export class ExecPlugin {
  readonly #spec: PluginSpec;
  readonly #now: () => number;
  #known: PluginCredential | undefined;
  #running: Promise<PluginCredential> | undefined;

  constructor(spec: PluginSpec, now: () => number) {
    this.#spec = spec;
    this.#now = now;
  }

  async credential(): Promise<PluginCredential> {
    const known = this.#known;
    if (known && (known.expiresAt === undefined || known.expiresAt - SKEW_MS > this.#now())) return known;
    this.#running ??= run(this.#spec)
      .then((credential) => {
        this.#known = credential;
        return credential;
      })
      .finally(() => {
        this.#running = undefined;
      });
    return await this.#running;
  }

  /** The API server refused it (401). */
  forget(): void {
    this.#known = undefined;
  }
}

async function run(spec: PluginSpec): Promise<PluginCredential> {
  const info = JSON.stringify({ apiVersion: spec.apiVersion, kind: 'ExecCredential', spec: { interactive: false } });
  const child = spawn(spec.command, [...spec.args], {
    env: { ...spec.env, KUBERNETES_EXEC_INFO: info },
    stdio: ['ignore', 'pipe', 'ignore'],
    signal: AbortSignal.timeout(LIMIT_MS),
    killSignal: 'SIGKILL',
  });
  const chunks: Buffer[] = [];
  let size = 0;
  child.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > MOST_BYTES) child.kill('SIGKILL');
    else chunks.push(chunk);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', (error) => reject(new Transient(whyNotRun(spec, error))));
    child.on('close', resolve);
  });
  if (code !== 0)
    throw new Transient({
      en: en`the credential plugin ${spec.command} ended with code ${code ?? 'none'}`,
      zh: zh`凭据插件 ${spec.command} 结束时的代码是 ${code ?? '未知'}`,
    });
  return toCredential(spec, Buffer.concat(chunks).toString('utf8'));
}

function whyNotRun({ command }: PluginSpec, error: Error): Text {
  return error.name === 'AbortError'
    ? {
        en: en`the credential plugin ${command} did not answer within ${LIMIT_MS / 1000} s`,
        zh: zh`凭据插件 ${command} 在 ${LIMIT_MS / 1000} 秒内没有答复`,
      }
    : {
        en: en`the credential plugin ${command} could not be run: ${error.message}`,
        zh: zh`无法运行凭据插件 ${command}：${error.message}`,
      };
}

/** Never quotes the answer: it holds a secret. */
function toCredential(spec: PluginSpec, text: string): PluginCredential {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    throw new Transient({
      en: en`the credential plugin ${spec.command} did not answer in JSON`,
      zh: zh`凭据插件 ${spec.command} 的答复不是 JSON`,
    });
  }
  const parsed = answer.safeParse(raw);
  if (!parsed.success)
    throw new Transient({
      en: en`the credential plugin ${spec.command} did not answer with an ExecCredential`,
      zh: zh`凭据插件 ${spec.command} 的答复不是 ExecCredential`,
    });
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = parsed.data.status;
  const expiresAt = expirationTimestamp === undefined ? undefined : Date.parse(expirationTimestamp);
  return {
    token,
    certificate: clientCertificateData,
    key: clientKeyData,
    expiresAt: expiresAt === undefined || Number.isNaN(expiresAt) ? undefined : expiresAt,
  };
}
