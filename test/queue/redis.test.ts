import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Transient } from '../../src/domain/errors.ts';
import { openQueue } from '../../src/queue/bullmq.ts';
import { silent } from '../support/database.ts';
import { collect, queueSuite, waitFor } from './queue.suite.ts';
import { hasRedis, RedisServer } from './redis.ts';

// `redis-server` comes from the system (Debian: redis-server); `.ci/run` installs it and fails when this is skipped.
describe.skipIf(!hasRedis)(
  `queue on Redis${hasRedis ? '' : ' (skipped: there is no redis-server on this machine)'}`,
  () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await RedisServer.start();
    });
    afterAll(() => redis.remove());

    queueSuite(() => {
      const prefix = `t-${randomUUID()}`;
      return Promise.resolve((options) =>
        openQueue({ databaseUrl: '', redisUrl: redis.url, prefix, log: silent, ...options }),
      );
    });

    it('refuses at once while Redis is away, enqueues nothing later, and works again when it is back and empty', async () => {
      const own = await RedisServer.start();
      const queue = await openQueue({ databaseUrl: '', redisUrl: own.url, log: silent });
      const seen = collect();
      await queue.work({ intake: seen.take });
      await queue.enqueue({ kind: 'intake', id: 'inb-before', n: 1 });
      await seen.count(1);
      await own.kill();
      const begun = performance.now();
      await expect(queue.enqueue({ kind: 'intake', id: 'inb-during', n: 1 })).rejects.toThrow(Transient);
      expect(performance.now() - begun).toBeLessThan(2_600);
      expect(await queue.isHealthy()).toBe(false);
      await own.start();
      await waitFor(() => queue.isHealthy(), 30_000);
      await queue.enqueue({ kind: 'intake', id: 'inb-after', n: 1 });
      await seen.until((jobs) => jobs.some(({ id }) => id === 'inb-after'));
      expect(seen.jobs.map(({ id }) => id)).toEqual(['inb-before', 'inb-after']);
      await queue.close();
      await own.remove();
    }, 60_000);

    it('refuses at once when Redis was never there', async () => {
      const queue = await openQueue({ databaseUrl: '', redisUrl: 'redis://127.0.0.1:1', log: silent });
      const begun = performance.now();
      await expect(queue.enqueue({ kind: 'intake', id: 'inb-1', n: 1 })).rejects.toThrow(Transient);
      expect(performance.now() - begun).toBeLessThan(1_000);
      await queue.close();
    });
  },
);
