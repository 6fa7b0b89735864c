import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { Transient } from '../../src/domain/errors.ts';
import type { JobRef, Queue } from '../../src/ports.ts';
import type { QueueOptions } from '../../src/queue/bullmq.ts';

type Open = (options?: Partial<QueueOptions>) => Promise<Queue>;

/** What every queue must do, whatever it stands on. `open` opens another process on the same, empty queue of the test. */
export function queueSuite(begin: () => Promise<Open>): void {
  const opened: Queue[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((queue) => queue.close()));
  });

  const fresh = async () => {
    const open = await begin();
    return async (options?: Partial<QueueOptions>) => {
      const queue = await open(options);
      opened.push(queue);
      return queue;
    };
  };

  it('brings each job to the handler of its kind, with the id and the number alone', async () => {
    const open = await fresh();
    const queue = await open();
    const seen = collect();
    await queue.work({ diagnose: seen.take, remediate: seen.take });
    await queue.enqueue({ kind: 'diagnose', id: 'inc-1', n: 1 });
    await queue.enqueue({ kind: 'remediate', id: 'pln-1', n: 7 });
    await queue.enqueue({ kind: 'intake', id: 'inb-1', n: 1 });
    await seen.count(2);
    expect(seen.jobs.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([
      { kind: 'diagnose', id: 'inc-1', n: 1 },
      { kind: 'remediate', id: 'pln-1', n: 7 },
    ]);
  });

  it('keeps what was enqueued before anybody worked, and hands it to one of several processes', async () => {
    const open = await fresh();
    const producer = await open();
    for (let n = 0; n < 20; n += 1) await producer.enqueue({ kind: 'intake', id: `inb-${n}`, n: 0 });
    const seen = collect();
    await (await open()).work({ intake: seen.take });
    await (await open()).work({ intake: seen.take });
    await seen.count(20);
    expect(new Set(seen.jobs.map(({ id }) => id)).size).toBe(20);
    expect(seen.jobs).toHaveLength(20);
  });

  it('takes a waiting job of the same name once, and one with the next number again', async () => {
    const open = await fresh();
    const queue = await open();
    for (const n of [1, 1, 1, 2]) await queue.enqueue({ kind: 'refresh', id: 'inc-1', n });
    const seen = collect();
    await queue.work({ refresh: seen.take });
    await queue.enqueue({ kind: 'refresh', id: 'inc-end', n: 1 });
    await seen.until((jobs) => jobs.some(({ id }) => id === 'inc-end') && jobs.length >= 3);
    expect(
      seen.jobs
        .filter(({ id }) => id === 'inc-1')
        .map(({ n }) => n)
        .toSorted(),
    ).toEqual([1, 2]);
  });

  it('does a delayed job after its time and not before', async () => {
    const open = await fresh();
    const queue = await open();
    const seen = collect();
    await queue.work({ diagnose: seen.take });
    const begun = performance.now();
    await queue.enqueue({ kind: 'diagnose', id: 'inc-1', n: 1 }, 400);
    await seen.count(1);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(390);
  });

  it('does a job that failed no second time, and goes on with the others', async () => {
    const open = await fresh();
    const queue = await open();
    const seen = collect();
    await queue.work({
      async intake(job) {
        await seen.take(job);
        if (job.id === 'inb-bad') throw new Error('no');
      },
    });
    await queue.enqueue({ kind: 'intake', id: 'inb-bad', n: 1 });
    await seen.count(1);
    await queue.enqueue({ kind: 'intake', id: 'inb-good', n: 1 });
    await seen.count(2);
    // Its name is free again, so the sweep may even use the same number.
    await queue.enqueue({ kind: 'intake', id: 'inb-bad', n: 2 });
    await seen.count(3);
    expect(seen.jobs.map(({ id, n }) => `${id} ${n}`)).toEqual(['inb-bad 1', 'inb-good 1', 'inb-bad 2']);
  });

  it('aborts the work in hand and closes in bounded time, also when a handler does not listen', async () => {
    const open = await fresh();
    const queue = await open({ closeMs: 300 });
    const signals: AbortSignal[] = [];
    await queue.work({
      remediate(_job, signal) {
        signals.push(signal);
        return new Promise(() => {});
      },
    });
    await queue.enqueue({ kind: 'remediate', id: 'pln-1', n: 1 });
    await waitFor(() => signals.length === 1);
    const begun = performance.now();
    await queue.close();
    expect(performance.now() - begun).toBeLessThan(6_000);
    expect(signals[0]?.aborted).toBe(true);
    await expect(queue.enqueue({ kind: 'remediate', id: 'pln-2', n: 1 })).rejects.toThrow(Transient);
    expect(await queue.isHealthy()).toBe(false);
  });

  it('gives a job whose worker was frozen or killed to another', async () => {
    const open = await fresh();
    const lock = { durationMs: 1_000, stalledMs: 500 };
    const first = await open({ lock, closeMs: 1 });
    let begun = 0;
    await first.work({
      remediate() {
        begun += 1;
        return new Promise(() => {});
      },
    });
    await first.enqueue({ kind: 'remediate', id: 'pln-1', n: 1 });
    await waitFor(() => begun === 1);
    await first.close();
    const seen = collect();
    await (await open({ lock })).work({ remediate: seen.take });
    await seen.count(1);
    expect(seen.jobs).toEqual([{ kind: 'remediate', id: 'pln-1', n: 1 }]);
  });

  it.each(['', 'a:b', 'a b', '../x', 'ü', '-x', 'x'.repeat(101)])('refuses %j as an id', async (id) => {
    const open = await fresh();
    await expect((await open()).enqueue({ kind: 'intake', id, n: 1 })).rejects.toThrow(TypeError);
  });

  it('is healthy while it is open', async () => {
    const open = await fresh();
    expect(await (await open()).isHealthy()).toBe(true);
  });
}

/** A handler that remembers, and waits for what it shall have seen. */
export function collect() {
  const jobs: JobRef[] = [];
  return {
    jobs,
    take(job: JobRef): Promise<void> {
      jobs.push(job);
      return Promise.resolve();
    },
    count: (wanted: number) => waitFor(() => jobs.length >= wanted),
    until: (isEnough: (jobs: readonly JobRef[]) => boolean) => waitFor(() => isEnough(jobs)),
  };
}

/** Looks again and again; what is waited for comes from another process. */
export async function waitFor(isSo: () => boolean | Promise<boolean>, timeoutMs = 15_000): Promise<void> {
  const until = performance.now() + timeoutMs;
  while (!(await isSo())) {
    if (performance.now() > until) throw new Error('it did not happen in time');
    await sleep(10);
  }
}
