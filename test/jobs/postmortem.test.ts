import { describe, expect, it } from 'vitest';
import { givePostmortem, type PostmortemDeps } from '../../jobs/postmortem.ts';
import type { KnownPerson } from '../../src/domain/approval.ts';
import { Refused, Transient, Uncertain } from '../../src/domain/errors.ts';
import type { IncidentFacts } from '../../src/domain/postmortem.ts';
import { verbatim } from '../../src/domain/text.ts';
import { facts, incident } from '../postmortem/sample.ts';
import { recordingLog } from '../slack/support/samples.ts';
import { memberOf } from '../support/people.ts';

const signal = new AbortController().signal;

type Row = { state: 'begun' | 'sharing' | 'shared'; isHeld: boolean };

/** A workspace and a table of files, each of which a test can let fail; `killed` ends a process where it stands. */
class Town {
  readonly shared: string[] = [];
  readonly told: string[] = [];
  readonly finished: string[] = [];
  readonly rows = new Map<string, Row>();
  facts: IncidentFacts | undefined = facts;
  person: Partial<KnownPerson> = {};
  send: () => Promise<string> = () => Promise.resolve('F1');
  share: () => Promise<void> = () => Promise.resolve();

  deps(): PostmortemDeps {
    const key = (id: string, hash: string) => `${id} ${hash}`;
    return {
      store: {
        incidentFacts: () => Promise.resolve(this.facts),
        beginPostmortem: (id, hash) => {
          const row = this.rows.get(key(id, hash));
          if (row?.state === 'shared') return Promise.resolve('there');
          if (row?.isHeld) return Promise.resolve('busy');
          this.rows.delete(key(id, hash));
          if (row?.state === 'sharing') return Promise.resolve('uncertain');
          this.rows.set(key(id, hash), { state: 'begun', isHeld: true });
          return Promise.resolve('begun');
        },
        sharePostmortem: (id, hash) =>
          Promise.resolve(void this.rows.set(key(id, hash), { state: 'sharing', isHeld: true })),
        endPostmortem: (id, hash, isShared) => {
          if (isShared) this.rows.set(key(id, hash), { state: 'shared', isHeld: false });
          else this.rows.delete(key(id, hash));
          return Promise.resolve();
        },
        finishRequest: (id) => Promise.resolve(void this.finished.push(id)),
      },
      chat: {
        identity: () => Promise.resolve({ teamId: 'T1', botUserId: 'U0BOT', url: 'https://acme.slack.com/' }),
        person: (id) => Promise.resolve(memberOf(id, { name: 'sam', locale: 'en-US', ...this.person })),
        sendFile: () => this.send(),
        shareFile: async ({ id, comment }, { channel, thread }) => {
          this.shared.push(`${id} ${channel} ${thread} ${comment}`);
          await this.share();
        },
        whisper: (_channel, _user, _thread, { text }) => Promise.resolve(void this.told.push(text)),
      },
      log: recordingLog(),
      settings: { language: 'en' },
      catalogue: { faults: [], remediations: [] },
    };
  }

  ask(user = 'U0SAM000001'): Promise<void> {
    const request = {
      kind: 'postmortem',
      user,
      channel: 'C1',
      thread: incident.thread,
      incident: incident.id,
    } as const;
    return givePostmortem({ id: 'inb-1', request }, this.deps(), signal);
  }

  /** The process that held everything is gone, and its leases are over. */
  crash(): void {
    for (const row of this.rows.values()) row.isHeld = false;
  }
}

describe('a post-mortem that somebody asks for', () => {
  it('is one file in the thread, and whoever asks again is told that it is there', async () => {
    const town = new Town();
    await town.ask();
    await town.ask('U0LIN000001');
    expect(town.shared).toEqual(['F1 C1 1700000000.000100 Post-mortem of Pod shop/db-0, asked for by <@U0SAM000001>.']);
    expect(town.told.join()).toMatch(/already/);
    expect(town.finished).toHaveLength(2);
  });

  it('is another file when the incident has changed since', async () => {
    const town = new Town();
    await town.ask();
    town.facts = { ...facts, incident: { ...incident, reopened: 1 } };
    await town.ask();
    expect(town.shared).toHaveLength(2);
  });

  it('is one file in each language', async () => {
    const town = new Town();
    await town.ask();
    town.person = { locale: 'zh-CN' };
    await town.ask();
    await town.ask();
    expect(town.shared).toHaveLength(2);
    expect(town.shared[1]).toContain('的事故复盘');
  });

  it('is one file when two ask at the same time', async () => {
    const town = new Town();
    await Promise.all([town.ask(), town.ask('U0LIN000001')]);
    expect(town.shared).toHaveLength(1);
  });

  it('is uploaded after a crash before Slack was asked to show it', async () => {
    const town = new Town();
    town.send = () => Promise.reject(new Error('killed'));
    await expect(town.ask()).rejects.toThrow('killed');
    town.crash();
    town.send = () => Promise.resolve('F2');
    await town.ask();
    expect(town.shared).toHaveLength(1);
    expect(town.finished).toHaveLength(1);
  });

  it.each([
    ['a crash', () => Promise.reject(new Error('killed'))],
    ['a lost answer', () => Promise.reject(new Uncertain(verbatim('the answer was lost')))],
  ])('is not shown twice after %s while Slack was asked: the person is told to look', async (_, share) => {
    const town = new Town();
    town.share = share;
    await town.ask().catch(() => undefined);
    town.crash();
    if (town.finished.length === 0) await town.ask();
    expect(town.shared).toHaveLength(1);
    expect(town.told.join()).toMatch(/may stand in the thread already/);
    town.share = () => Promise.resolve();
    await town.ask();
    expect(town.shared).toHaveLength(2);
  });

  it('is tried again when Slack is away, and the request stays open until then', async () => {
    const town = new Town();
    town.send = () => Promise.reject(new Transient(verbatim('no answer')));
    await expect(town.ask()).rejects.toThrow(Transient);
    expect(town.finished).toEqual([]);
    town.send = () => Promise.resolve('F1');
    await town.ask();
    expect(town.shared).toHaveLength(1);
  });

  it.each<readonly [string, (town: Town) => void, RegExp]>([
    [
      'Slack refuses the file',
      (town) => (town.send = () => Promise.reject(new Refused(verbatim('missing_scope')))),
      /files:write/,
    ],
    ['the incident is not known', (town) => (town.facts = undefined), /No incident inc-7k2m is known/],
    [
      'it has no thread',
      (town) => (town.facts = { ...facts, incident: { ...incident, thread: null } }),
      /has no thread.*command line/,
    ],
    ['a guest asks', (town) => (town.person = { isRestricted: true }), /Guests may not/],
    ['somebody of another workspace asks', (town) => (town.person = { teamId: 'T2' }), /another workspace/],
  ])('is answered with why not when %s', async (_, change, says) => {
    const town = new Town();
    change(town);
    await town.ask();
    expect(town.shared).toEqual([]);
    expect(town.told.join()).toMatch(says);
    expect(town.finished).toHaveLength(1);
  });
});
