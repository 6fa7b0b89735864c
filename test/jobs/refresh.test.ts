import { describe, expect, it } from 'vitest';
import { type RefreshDeps, refresh } from '../../jobs/refresh.ts';
import type { Chain } from '../../src/domain/chain.ts';
import { Refused, Transient } from '../../src/domain/errors.ts';
import { verbatim } from '../../src/domain/text.ts';
import type { ChatMessage, PostedMessage } from '../../src/ports.ts';
import { incidentOf, recordingLog } from '../slack/support/samples.ts';
import { storedIncident } from '../support/stored.ts';

const signal = new AbortController().signal;
const node = { namespace: null, state: null, more: 0 } as const;
const chain: Chain = {
  nodes: [
    { ...node, id: 'p', kind: 'Pod', name: 'db-1', role: 'stuck' },
    { ...node, id: 'v', kind: 'PersistentVolume', name: 'pv-1', role: 'other' },
    { ...node, id: 'n', kind: 'Node', name: 'n3', role: 'culprit' },
  ],
  edges: [
    { from: 'p', to: 'v', says: 'uses' },
    { from: 'v', to: 'n', says: 'on' },
  ],
  culprit: 'n',
};
const incident = storedIncident(incidentOf({ thread: null, chains: [{ finding: 'f1', chain }] }));

/** A workspace, a database and a painter, each of which a test can let fail. */
class Town {
  readonly shown = new Map<string, ChatMessage>();
  readonly did: string[] = [];
  readonly slept: number[] = [];
  readonly log = recordingLog();
  readonly messages = new Map<string, PostedMessage>();
  readonly files = new Map<string, string>();
  wanted = 1;
  upload: () => Promise<string> = () => Promise.resolve('F1');
  png: () => Promise<Uint8Array> = () => Promise.resolve(new Uint8Array([1]));
  /** How many more times Slack refuses a message with a picture. */
  refusals = 0;
  incident = incident;
  /** What the channel's pace answers, one after another; then it takes everything. */
  turns: number[] = [];
  missingChannel = '';
  readonly troubles = new Set<string>();

  show(ts: string, message: ChatMessage): void {
    if (pictureOf(message) !== undefined && this.refusals > 0) {
      this.refusals -= 1;
      throw new Refused(verbatim('Slack refused chat.update: invalid_blocks'));
    }
    this.shown.set(ts, message);
  }

  readonly endedTurns: string[] = [];

  deps(): RefreshDeps {
    return {
      store: {
        beginRefresh: () => Promise.resolve({ wanted: this.wanted }),
        endRefresh: (_, shown) => Promise.resolve(void this.did.push(`shown ${shown}`)),
        findIncident: () => Promise.resolve(this.incident),
        plansOfIncident: () => Promise.resolve([]),
        findMessages: () => Promise.resolve([...this.messages.values()]),
        saveMessage: (_, message) => Promise.resolve(void this.messages.set(message.key, message)),
        recordThread: () => Promise.resolve(),
        findPictures: (hashes) => Promise.resolve(new Map([...this.files].filter(([hash]) => hashes.includes(hash)))),
        takeTurn: () => Promise.resolve(this.turns.shift() ?? 0),
        endTurn: (channel, kind) => Promise.resolve(void this.endedTurns.push(`${channel} ${kind}`)),
        postpone: (_, ms) => Promise.resolve(void this.did.push(`postponed ${ms}`)),
        alertsOfIncident: () => Promise.resolve([]),
        clearChannelTrouble: () => Promise.resolve(),
        noteChannelTrouble: (channel) => {
          const isNew = !this.troubles.has(channel);
          this.troubles.add(channel);
          return Promise.resolve({ isNew });
        },
        savePicture: (_, hash, file) => Promise.resolve(void this.files.set(hash, file)),
      },
      settings: { language: 'en', admin: 'U0ADMIN', incidentChannel: 'C1' },
      chat: {
        post: async (channel, _thread, message) => {
          if (channel === this.missingChannel)
            throw new Refused(verbatim('Slack refused chat.postMessage: channel_not_found'));
          const ts = `${this.shown.size + 1}.0`;
          this.show(ts, message);
          this.did.push('post');
          return { channel, ts };
        },
        update: async (_channel, ts, message) => {
          this.show(ts, message);
          this.did.push('update');
        },
        identity: () => Promise.resolve({ teamId: 'T1', botUserId: 'U0BOT', url: 'https://acme.slack.com/' }),
        upload: () => {
          this.did.push('upload');
          return this.upload();
        },
      },
      queue: { enqueue: (_, ms) => Promise.resolve(void this.did.push(`again in ${ms}`)) },
      clock: { now: () => 1 },
      painter: { png: () => this.png() },
      log: this.log,
      sleep: (ms) => Promise.resolve(void this.slept.push(ms)),
    };
  }

  async refresh(): Promise<void> {
    await refresh('inc-1', this.deps(), signal);
  }

  pictures(): readonly unknown[] {
    return [...this.shown.values()].flatMap((message) => pictureOf(message) ?? []);
  }
}

function pictureOf(message: ChatMessage): unknown {
  return message.blocks.find(({ type }) => type === 'image');
}

describe('the picture of a thread', () => {
  it('comes after the words, into the message of its finding', async () => {
    const town = new Town();
    await town.refresh();
    expect(town.did).toEqual(['post', 'post', 'shown 1', 'upload', 'update', 'shown 1']);
    expect(town.pictures()).toHaveLength(1);
    expect(town.pictures()[0]).toMatchObject({ type: 'image', slack_file: { id: 'F1' } });
    expect(JSON.stringify(town.pictures())).toContain('The cause is Node n3; stuck: Pod db-1; Pod db-1 uses');
    expect(pictureOf(town.shown.get('1.0') ?? { text: '', blocks: [], metadata: metadata })).toBeUndefined();
  });

  it('is uploaded once, whatever else changes', async () => {
    const town = new Town();
    await town.refresh();
    await town.refresh();
    town.incident = { ...incident, problem: verbatim('no connection') };
    await town.refresh();
    expect(town.did.filter((what) => what === 'upload')).toHaveLength(1);
    expect(town.did.filter((what) => what === 'post')).toHaveLength(2);
    expect(town.pictures()).toHaveLength(1);
  });

  it('is not uploaded or posted again after a crash between upload and edit', async () => {
    const town = new Town();
    const deps = town.deps();
    const crash = { ...deps, chat: { ...deps.chat, update: () => Promise.reject(new Error('killed')) } };
    await expect(refresh('inc-1', crash, signal)).rejects.toThrow('killed');
    expect(town.did).toEqual(['post', 'post', 'shown 1', 'upload']);
    await town.refresh();
    expect(town.did).toEqual(['post', 'post', 'shown 1', 'upload', 'update', 'shown 1']);
    expect(town.pictures()).toHaveLength(1);
  });

  it.each([
    ['Slack refuses the upload', { upload: () => Promise.reject(new Refused(verbatim('missing_scope'))) }, 0],
    ['the upload fails', { upload: () => Promise.reject(new Transient(verbatim('no answer'))) }, 1],
    ['it cannot be drawn', { png: () => Promise.reject(new Transient(verbatim('exit code 1'))) }, 1],
  ])('is left out when %s, and the thread stands', async (_, failing, warnings) => {
    const town = Object.assign(new Town(), failing);
    await town.refresh();
    expect(town.did.filter((what) => what !== 'upload')).toEqual(['post', 'post', 'shown 1']);
    expect(town.pictures()).toEqual([]);
    expect(town.log.lines).toHaveLength(warnings);
  });

  it('waits a little for Slack to be done with it', async () => {
    const town = Object.assign(new Town(), { refusals: 2 });
    await town.refresh();
    expect(town.slept).toEqual([500, 1000]);
    expect(town.pictures()).toHaveLength(1);
  });

  it('is left out while Slack refuses it, and shown by a later refresh without another upload', async () => {
    const town = Object.assign(new Town(), { refusals: 4 });
    await town.refresh();
    expect(town.did).toEqual(['post', 'post', 'shown 1', 'upload', 'shown 1']);
    expect(town.pictures()).toEqual([]);
    await town.refresh();
    expect(town.did).toEqual(['post', 'post', 'shown 1', 'upload', 'shown 1', 'update', 'shown 1']);
    expect(town.pictures()).toHaveLength(1);
  });

  it('goes with its finding', async () => {
    const town = new Town();
    await town.refresh();
    town.incident = { ...incident, state: 'resolved' };
    await town.refresh();
    expect(town.pictures()).toEqual([]);
  });
});

const metadata = { event_type: 'k8s_storage', event_payload: {} } as const;

describe('a thread that nobody asked for', () => {
  const silent = { ...incident, origin: 'alert' as const, chains: [] };

  it('waits for a turn that comes soon, and is given back until one that comes later', async () => {
    const town = new Town();
    town.incident = silent;
    town.turns = [400, 0, 9000];
    await town.refresh();
    expect(town.slept).toEqual([400]);
    expect(town.did).toEqual(['post', 'postponed 9000', 'again in 9000']);
  });

  it('is posted at once when a person asked, whatever the pace', async () => {
    const town = new Town();
    town.incident = { ...silent, origin: 'person' };
    town.turns = [9000, 9000];
    await town.refresh();
    expect(town.did).toEqual(['post', 'post', 'shown 1']);
  });

  it('tells the log and the admin once of a channel that cannot be written to, and tries again', async () => {
    const town = new Town();
    town.incident = silent;
    town.missingChannel = silent.channel;
    await town.refresh();
    await town.refresh();
    expect(town.did).toEqual(['post', 'postponed 60000', 'again in 60000', 'postponed 60000', 'again in 60000']);
    expect([...town.shown.values()].map(({ text }) => text)).toEqual([
      expect.stringContaining('cannot write to the channel C1'),
    ]);
    expect(town.log.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
    // Both tries gave the channel's turn back.
    expect(town.endedTurns).toEqual(['C1 post', 'C1 post']);
  });

  it('says where it went on when its trouble is another one’s, and shows no findings any more', async () => {
    const town = new Town();
    town.incident = { ...silent, state: 'joined', joinedInto: 'inc-2', thread: '1700000000.000100' };
    await town.refresh();
    expect([...town.shown.values()].map(({ text }) => text)).toEqual([
      expect.stringMatching(/has a thread already; it goes on in <https:\/\/acme\.slack\.com\/archives/),
    ]);
  });
});
