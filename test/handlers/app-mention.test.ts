import { beforeEach, describe, expect, it } from 'vitest';
import { appMention } from '../../handlers/events/app-mention.ts';
import type { Happening } from '../../src/surface.ts';
import { type FakeSurface, fakeSurface } from '../slack/support/fake-surface.ts';
import { incidentOf } from '../slack/support/samples.ts';
import { storedIncident } from '../support/stored.ts';

let surface: FakeSurface;

beforeEach(() => {
  surface = fakeSurface();
});

function mention(text: string, thread: string | null): Happening {
  return { user: 'U1', channel: 'C1', thread, key: 'evt:Ev1', text, tab: '' };
}

describe('a mention in the thread of an incident', () => {
  beforeEach(() => surface.set({ incident: storedIncident(incidentOf()) }));

  const words: readonly (readonly [string, unknown])[] = [
    ['<@UBOT>', { kind: 'ask', topic: 'status', about: 'inc-1', thread: '9.1' }],
    ['<@UBOT> status', { kind: 'ask', topic: 'status', about: 'inc-1' }],
    ['hey <@UBOT>', undefined],
    ['<@UBOT> Recheck', { kind: 'recheck', incident: 'inc-1' }],
    ['<@UBOT|k8s-storage> diagnose', { kind: 'recheck', incident: 'inc-1' }],
    ['<@UBOT> postmortem', { kind: 'postmortem', incident: 'inc-1' }],
    ['<@UBOT> evidence', { kind: 'ask', topic: 'evidence', about: 'inc-1' }],
    ['<@UBOT> commands', { kind: 'ask', topic: 'commands', about: 'inc-1' }],
    ['<@UBOT> diagnose node/n9', { kind: 'diagnose', scope: { kind: 'Node', namespace: null, name: 'n9' } }],
    ['<@UBOT> help', undefined],
  ];
  it.each(words)('%s', async (text, body) => {
    await appMention.run(mention(text, '9.1'), surface);
    if (body === undefined) expect(surface.rows).toEqual([]);
    else expect(surface.rows[0]?.body).toMatchObject(body as object);
  });

  it('with an unknown word gets help and the nearest word, alone', async () => {
    expect(await appMention.run(mention('<@UBOT> reject', '9.1'), surface)).toMatchObject({
      kind: 'tell',
      text: { en: expect.stringMatching(/do not know the word `reject`/) as unknown },
    });
  });
});

describe('a mention elsewhere', () => {
  it('in a thread that is no incident says so, and asks nothing', async () => {
    expect(await appMention.run(mention('<@UBOT> recheck', '9.1'), surface)).toMatchObject({
      kind: 'tell',
      text: { en: expect.stringMatching(/^This thread is not an incident of mine/) as unknown },
    });
    expect(surface.rows).toEqual([]);
  });

  it('of a word about an incident says where it belongs', async () => {
    expect(await appMention.run(mention('<@UBOT> evidence', null), surface)).toMatchObject({
      kind: 'tell',
      text: { en: expect.stringMatching(/say it in the incident's thread/) as unknown },
    });
  });

  it('is the slash command by another name', async () => {
    await appMention.run(mention('<@UBOT> diagnose pvc/data-db-0 -n shop', null), surface);
    expect(surface.rows[0]).toMatchObject({ key: 'evt:Ev1', body: { kind: 'diagnose', channel: 'C1' } });
  });
});
