import { describe, expect, it } from 'vitest';
import { testServer } from '../support/database.ts';

const server = testServer();

describe('inbox', () => {
  it('takes each delivery in once, also when it comes a hundred times at once', async () => {
    const store = await server.store();
    const entry = {
      source: 'slack' as const,
      key: 'trigger-1',
      body: { kind: 'pause' as const, user: 'U1', channel: 'C1', cluster: null },
    };
    const taken = await Promise.all(Array.from({ length: 100 }, (_, i) => store.takeIn(`inb-${i}`, entry)));
    expect(taken.filter(({ fresh }) => fresh)).toHaveLength(1);
    expect(new Set(taken.map(({ id }) => id)).size).toBe(1);
  });

  it('replaces what PostgreSQL cannot hold in text, and keeps the rest', async () => {
    const store = await server.store();
    const odd = 'a\0b\uD800c \u{1F600} ü';
    const body = { kind: 'ask' as const, user: 'U1', channel: 'C1', thread: null, topic: 'audit' as const, about: odd };
    const { id } = await store.takeIn('inb-1', { source: 'slack', key: `k${odd}`, body });
    expect(await store.takeIn('inb-2', { source: 'slack', key: `k${odd}`, body })).toEqual({ id, fresh: false });
    expect((await store.findRequest(id))?.request).toEqual({ ...body, about: 'a\uFFFDb\uFFFDc \u{1F600} ü' });
  });

  it('tells whether a request was answered', async () => {
    const store = await server.store();
    expect(await store.findRequest('inb-none')).toBeUndefined();
    await store.takeIn('inb-1', {
      source: 'slack',
      key: 'k',
      body: { kind: 'resume', user: 'U1', channel: 'C1', cluster: 'prod' },
    });
    expect((await store.findRequest('inb-1'))?.isDone).toBe(false);
    await store.finishRequest('inb-1');
    expect((await store.findRequest('inb-1'))?.isDone).toBe(true);
  });
});
