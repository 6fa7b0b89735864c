import type { Deps } from '../src/deps.ts';
import { Refused, Transient } from '../src/domain/errors.ts';
import { hashOf } from '../src/domain/report.ts';
import { locales } from '../src/locales/index.ts';
import { rushMessage } from '../src/slack/views/rush.ts';
import { tellChannelTrouble } from './tell.ts';

const AGAIN_MS = 1_000;
const unchanged = { channel: null, ts: null, hash: null };

/** Keeps the one message that stands for many new incidents at what the tables say. */
export async function showList(id: string, deps: Deps, signal: AbortSignal): Promise<void> {
  const list = await deps.store.beginList(id);
  if (!list) return;
  const { url } = await deps.chat.identity(signal);
  const message = rushMessage(list.incidents, url, locales[deps.settings.language]);
  const hash = hashOf(message);
  if (hash === list.hash) return deps.store.endList(id, { ...unchanged, waitMs: 0 });
  const { channel, ts } = list;
  const paced = deps.settings.incidentChannel ?? channel;
  const kind = ts === null ? 'post' : 'update';
  const waitMs = await deps.store.takeTurn('', paced, kind);
  if (waitMs > 0) return comeBack(id, AGAIN_MS, deps);
  try {
    const sent = ts === null ? await deps.chat.post(channel, null, message, signal) : { channel, ts };
    if (ts !== null) await deps.chat.update(channel, ts, message, signal);
    await deps.store.endList(id, { ...sent, hash, waitMs: 0 });
  } catch (error) {
    const code = error instanceof Refused ? /: ([a-z_]+)$/.exec(error.message)?.[1] : undefined;
    if (code !== undefined) await tellChannelTrouble(channel, code, deps, signal);
    else if (!(error instanceof Transient)) throw error;
    await deps.store.endList(id, { ...unchanged, waitMs: 30_000 });
  } finally {
    await deps.store.endTurn(paced, kind);
  }
}

async function comeBack(id: string, waitMs: number, deps: Deps): Promise<void> {
  await deps.store.endList(id, { ...unchanged, waitMs });
  await deps.queue.enqueue({ kind: 'list', id, n: deps.clock.now() }, waitMs);
}
