import {
  Queue as BullQueue,
  createPostgresBackend,
  isPgPool,
  type Job,
  type JobsOptions,
  type JobType,
  runMigrations,
  Worker,
} from 'bullmq';
import { Redis } from 'ioredis';
import pg from 'pg';
import { messageOf, Transient } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import { type JobKind, type JobRef, jobKinds, type Log, type Queue } from '../ports.ts';
import { jobId } from './job-id.ts';

export interface QueueOptions {
  /** PostgreSQL, where the jobs stand in a schema of their own, `bullmq`, unless there is a Redis. */
  readonly databaseUrl: string;
  readonly redisUrl: string | undefined;
  readonly log: Log;
  /** How many jobs of a kind this process does at once. */
  readonly concurrency?: Readonly<Partial<Record<JobKind, number>>>;
  /** How long `close` waits for the jobs that are being done; 10 s unless said. */
  readonly closeMs?: number;
  /** Of the jobs' locks; shorter ones only for tests. */
  readonly lock?: { readonly durationMs: number; readonly stalledMs: number };
  /** Prefix of the keys on Redis. */
  readonly prefix?: string;
}

const ENQUEUE_MS = 2_500;
const HEALTH_MS = 2_000;
const CLOSE_MS = 10_000;
const STOP_TAKING_MS = 1_000;
const SCHEMA = 'bullmq';
const LOCK = { durationMs: 30_000, stalledMs: 5_000 };
const CONCURRENCY: Readonly<Record<JobKind, number>> = {
  intake: 8,
  alert: 1,
  diagnose: 2,
  remediate: 4,
  refresh: 4,
  list: 1,
  scan: 1,
};

/**
 * The queue, on PostgreSQL or on Redis. It only wakes up: jobs carry an id, are tried once and leave no trace, and the
 * sweep finds in the tables what the queue has lost. Throws `Transient` when it cannot be reached.
 */
export async function openQueue(options: QueueOptions): Promise<Queue> {
  const { databaseUrl, redisUrl } = options;
  return new BullmqQueue(
    options,
    redisUrl === undefined ? await postgresBackend(databaseUrl, options) : await redisBackend(redisUrl, options),
  );
}

/** How to make queues and workers on one of the two, and what is left to close. */
interface Backend {
  queue(kind: JobKind): Producer;
  worker(kind: JobKind, run: Run): Consumer;
  close(): Promise<void>;
}

type Run = (job: Pick<Job, 'id' | 'data'>, token: string | undefined, signal: AbortSignal | undefined) => Promise<void>;

/** What is used of BullMQ's classes, whose types depend on what they stand on. */
interface Producer {
  add(name: string, data: unknown, options: JobsOptions): Promise<unknown>;
  getJobCounts(...states: JobType[]): Promise<unknown>;
  on(event: 'error', listener: (error: Error) => void): unknown;
  close(): Promise<void>;
}

interface Consumer {
  on(event: 'error', listener: (error: Error) => void): unknown;
  on(event: 'failed', listener: (job: Pick<Job, 'id'> | undefined, error: Error) => void): unknown;
  on(event: 'lockRenewalFailed', listener: (ids: string[]) => void): unknown;
  cancelJob(id: string, reason?: string): boolean;
  waitUntilReady(): Promise<unknown>;
  pause(doNotWaitActive?: boolean): Promise<void>;
  close(force?: boolean): Promise<void>;
}

const jobOptions = { attempts: 1, removeOnComplete: true, removeOnFail: true, sizeLimit: 4_096 };

function workerOptions(kind: JobKind, options: QueueOptions) {
  const { durationMs, stalledMs } = options.lock ?? LOCK;
  return {
    concurrency: options.concurrency?.[kind] ?? CONCURRENCY[kind],
    lockDuration: durationMs,
    stalledInterval: stalledMs,
    maxStalledCount: 10,
    autorun: true,
  };
}

async function postgresBackend(connectionString: string, options: QueueOptions): Promise<Backend> {
  await migrate(connectionString);
  const pool = new pg.Pool({
    connectionString,
    application_name: 'k8s-storage-bot queue',
    // One waits in LISTEN for each kind that is worked on, the others ask.
    max: jobKinds.length + 6,
    // BullMQ's functions name their tables without a schema, so the pool must set the path.
    options: `-c search_path=${SCHEMA}`,
    connectionTimeoutMillis: ENQUEUE_MS,
    keepAlive: true,
  });
  // Each queue and each worker listens to the pool.
  pool.setMaxListeners(4 * jobKinds.length);
  pool.on('error', (error) => options.log.debug('queue connection lost', { reason: error.message }));
  // A connection in use tells its end on the client alone; without a listener that ends the process.
  pool.on('connect', (client) => {
    client.on('error', (error) => options.log.debug('queue connection lost', { reason: error.message }));
  });
  // BullMQ describes the pool's events a little differently than the driver does.
  if (!isPgPool(pool)) throw new Error('no pool');
  return {
    queue: (kind) => new BullQueue(kind, { connection: pool, defaultJobOptions: jobOptions }, createPostgresBackend),
    worker: (kind, run) =>
      new Worker(
        kind,
        (job, token, signal) => run(job, token, signal),
        { connection: pool, ...workerOptions(kind, options) },
        createPostgresBackend,
      ),
    close: () => pool.end(),
  };
}

/** On one connection of its own, as BullMQ wants it; several processes at once wait for each other. */
async function migrate(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000, query_timeout: 60_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await runMigrations(client, SCHEMA);
  } catch (cause) {
    throw new Transient(
      {
        en: en`the queue's tables could not be made: ${messageOf(cause)}`,
        zh: zh`无法创建队列的表：${messageOf(cause)}`,
      },
      { cause },
    );
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Producers share one connection that fails at once when Redis is away: a click that was answered with "try again" must
 * not be queued minutes later. BullMQ gives a queue up for good whose first command fails, so each is made when the
 * connection stands.
 */
async function redisBackend(url: string, options: QueueOptions): Promise<Backend> {
  const prefix = options.prefix ?? 'k8s-storage';
  const redis = new Redis(url, {
    maxRetriesPerRequest: 1,
    enableOfflineQueue: false,
    commandTimeout: 2_000,
    connectTimeout: ENQUEUE_MS,
  });
  redis.on('error', (error) => options.log.debug('queue connection lost', { reason: error.message }));
  // Whether it comes in time or not: until it stands, every call says so.
  await settles(new Promise((ready) => redis.once('ready', ready)), ENQUEUE_MS);
  return {
    queue: (kind) =>
      lazily(kind, options.log, () => {
        if (redis.status !== 'ready') throw new Error(`no connection to Redis (${redis.status})`);
        return new BullQueue(kind, {
          connection: redis,
          skipWaitingForReady: true,
          prefix,
          defaultJobOptions: jobOptions,
        });
      }),
    // Workers block on purpose, so they get no time-outs; BullMQ makes them retry for ever.
    worker: (kind, run) =>
      new Worker(kind, (job, token, signal) => run(job, token, signal), {
        connection: { url },
        prefix,
        ...workerOptions(kind, options),
      }),
    close() {
      redis.disconnect();
      return Promise.resolve();
    },
  };
}

function lazily(kind: JobKind, log: Log, make: () => Producer): Producer {
  let made: Producer | undefined;
  const get = () => {
    made ??= listen(make(), kind, log);
    return made;
  };
  return {
    add: async (name, data, jobOptions) => get().add(name, data, jobOptions),
    getJobCounts: async (...states) => get().getJobCounts(...states),
    on: () => undefined,
    close: async () => made?.close(),
  };
}

class BullmqQueue implements Queue {
  readonly #options: QueueOptions;
  readonly #backend: Backend;
  readonly #queues: ReadonlyMap<JobKind, Producer>;
  readonly #workers: Consumer[] = [];
  readonly #active = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #closed: Promise<void> | undefined;

  constructor(options: QueueOptions, backend: Backend) {
    this.#options = options;
    this.#backend = backend;
    this.#queues = new Map(jobKinds.map((kind) => [kind, listen(backend.queue(kind), kind, options.log)]));
  }

  async enqueue(job: JobRef, delayMs = 0): Promise<void> {
    const id = jobId(job);
    const queue = this.#queues.get(job.kind);
    if (!queue || this.#closing.signal.aborted)
      throw new Transient({ en: 'the queue is being closed', zh: '队列正在关闭' });
    const added = queue.add(
      job.kind,
      { id: job.id, n: job.n },
      { jobId: id, ...(delayMs > 0 ? { delay: delayMs } : {}) },
    );
    try {
      await within(added, ENQUEUE_MS);
    } catch (cause) {
      throw new Transient(
        {
          en: en`the queue does not take it now: ${messageOf(cause)}`,
          zh: zh`队列现在无法接收：${messageOf(cause)}`,
        },
        { cause },
      );
    }
  }

  async work(handlers: Parameters<Queue['work']>[0]): Promise<void> {
    const started: Consumer[] = [];
    for (const kind of jobKinds) {
      const handler = handlers[kind];
      if (!handler) continue;
      const worker = this.#backend.worker(kind, async (job, _token, signal) => {
        const signals = signal ? [signal, this.#closing.signal] : [this.#closing.signal];
        await this.#track(handler(parseJob(kind, job.data), AbortSignal.any(signals)));
      });
      listen(worker, kind, this.#options.log);
      worker.on('failed', (job, error) =>
        this.#options.log.info('job failed, the sweep finds it again', { job: job?.id, reason: error.message }),
      );
      // Whoever lost the lock must stop: another worker has the job by now.
      worker.on('lockRenewalFailed', (ids) => {
        for (const id of ids) worker.cancelJob(id, 'lock lost');
      });
      this.#workers.push(worker);
      started.push(worker);
    }
    if (this.#options.redisUrl === undefined) await Promise.all(started.map((worker) => worker.waitUntilReady()));
  }

  async #track(work: Promise<void>): Promise<void> {
    this.#active.add(work);
    try {
      await work;
    } finally {
      this.#active.delete(work);
    }
  }

  async isHealthy(): Promise<boolean> {
    if (this.#closing.signal.aborted) return false;
    const [queue] = this.#queues.values();
    if (!queue) return false;
    return within(queue.getJobCounts('waiting'), HEALTH_MS).then(
      () => true,
      () => false,
    );
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /**
   * Bounded, whatever a handler does. BullMQ's own `close` waits for active jobs without end and cannot be forced once it
   * was begun, and a call that begins after it never settles: so the jobs in hand are waited for here.
   */
  async #close(): Promise<void> {
    this.#closing.abort(new Transient({ en: 'the process is stopping', zh: '进程正在停止' }));
    await Promise.all(this.#workers.map((worker) => settles(worker.pause(true), STOP_TAKING_MS)));
    const isIdle = await settles(Promise.allSettled(this.#active), this.#options.closeMs ?? CLOSE_MS);
    await Promise.all(this.#workers.map((worker) => settles(worker.close(!isIdle), 2_000)));
    await Promise.all([...this.#queues.values()].map((queue) => settles(queue.close(), 2_000)));
    await settles(this.#backend.close(), 2_000);
  }
}

/** Jobs are data from outside: whoever reaches the queue can write them, and then they must name a row or be nothing. */
function parseJob(kind: JobKind, data: unknown): JobRef {
  if (typeof data !== 'object' || data === null || !('id' in data) || !('n' in data))
    throw new TypeError('a job without an id');
  const { id, n } = data;
  if (typeof id !== 'string' || typeof n !== 'number') throw new TypeError('a job without an id');
  return { kind, id, n };
}

/** Attached at once: an `error` event that nobody listens to ends the process. */
function listen<T extends { on(event: 'error', listener: (error: Error) => void): unknown }>(
  emitter: T,
  kind: JobKind,
  log: Log,
): T {
  emitter.on('error', (error) => log.debug('queue says', { queue: kind, reason: error.message }));
  return emitter;
}

async function within<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
  });
  // What settles after its time has no one who waits for it.
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function settles(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  return within(
    promise.then(
      () => true,
      () => true,
    ),
    timeoutMs,
  ).catch(() => false);
}
