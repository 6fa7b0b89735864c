import type { Chain, FindingChain } from '../src/domain/chain.ts';
import { describeChain } from '../src/domain/chain-text.ts';
import { Refused } from '../src/domain/errors.ts';
import { type Incident, isOver } from '../src/domain/incident.ts';
import { hashOf } from '../src/domain/report.ts';
import type { Language } from '../src/domain/text.ts';
import type { Chat, Log, Painter, Store } from '../src/ports.ts';
import type { Picture, Pictures } from '../src/slack/views/findings.ts';

/** What drawing for a thread needs. */
export interface PictureDeps {
  readonly store: Pick<Store, 'findPictures' | 'savePicture'>;
  readonly chat: Pick<Chat, 'upload'>;
  readonly painter: Painter;
  readonly log: Log;
}

/** Raised when the same chain is drawn differently, so that old files are not shown for it. */
const DRAWN_AS = 1;

/** What the thread draws, by what it shows: the chains themselves stand with the incident. */
export interface ThreadPictures {
  /** Pictures that Slack has already. */
  readonly known: Pictures;
  readonly missing: readonly FindingChain[];
}

/** Looks up which pictures of an incident were uploaded before, by this process or another; their words are the thread's. */
export async function findPictures(
  incident: Incident<unknown>,
  language: Language,
  deps: PictureDeps,
): Promise<ThreadPictures> {
  const chains = isOver(incident.state) ? [] : incident.chains;
  const files = await deps.store.findPictures(chains.map(({ chain }) => keyOf(chain)));
  const known = new Map<string, Picture>();
  for (const { finding, chain } of chains) {
    const file = files.get(keyOf(chain));
    if (file !== undefined) known.set(finding, { file, words: describeChain(chain, language) });
  }
  return { known, missing: chains.filter(({ finding }) => !known.has(finding)) };
}

/**
 * Draws and uploads what is missing, and records it, so that each is uploaded once. A picture only helps: whatever goes
 * wrong, the thread stands without it, and the next refresh tries again. Whether there is anything new to show.
 */
export async function makePictures(
  missing: readonly FindingChain[],
  incident: string,
  deps: PictureDeps,
  signal: AbortSignal,
): Promise<boolean> {
  let isNew = false;
  for (const { chain } of missing) {
    try {
      const png = await deps.painter.png(chain, signal);
      const file = await deps.chat.upload({ name: 'chain.png', png }, signal);
      await deps.store.savePicture(incident, keyOf(chain), file);
      isNew = true;
    } catch (error) {
      if (signal.aborted) throw error;
      // The adapter says once that it may not upload; that is no news for each thread.
      if (!(error instanceof Refused)) deps.log.info('a picture could not be made', { incident, error: String(error) });
      break;
    }
  }
  return isNew;
}

function keyOf(chain: Chain): string {
  return hashOf({ chain, drawnAs: DRAWN_AS });
}
