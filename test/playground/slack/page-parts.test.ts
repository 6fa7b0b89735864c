import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { type Block, Message } from 'slack-blocks-to-jsx';
import { describe, expect, it } from 'vitest';
import { buildPage } from '../../../src/playground/page/build.ts';
import { complete } from '../../../src/playground/page/completion.ts';
import { slackDate } from '../../../src/playground/page/dates.ts';
import { tameBlock, unknownEmoji } from '../../../src/playground/page/mrkdwn.ts';
import type { ClusterRow } from '../../../src/playground/slack/cluster-rows.ts';
import { isObject } from '../../../src/playground/slack/json.ts';

const rows: readonly ClusterRow[] = [
  {
    key: '1',
    kind: 'PersistentVolumeClaim',
    namespace: 'shop',
    name: 'fine',
    chips: [{ text: 'Bound', tone: 'good' }],
    detail: '',
  },
  {
    key: '2',
    kind: 'PersistentVolumeClaim',
    namespace: 'shop',
    name: 'data-db-0',
    chips: [{ text: 'Terminating', tone: 'bad' }],
    detail: '',
  },
  { key: '3', kind: 'Node', namespace: '', name: 'n1', chips: [{ text: 'NotReady', tone: 'bad' }], detail: '' },
];
const names = [
  { name: 'k8s-storage', title: 'app' },
  { name: 'sam', title: 'on-call' },
];
function offered(typed: string, inThread = false): readonly string[] {
  return complete(typed, inThread, '/k8s-storage', names, rows).suggestions.map((each) => each.text);
}

function isSection(value: unknown): value is Block {
  return isObject(value) && value['type'] === 'section';
}

describe('completion', () => {
  it('offers every word of the command from the first slash on', () => {
    expect(offered('/')).toEqual(
      ['diagnose', 'help', 'status', 'incidents', 'audit', 'pause', 'resume'].map((word) => `/k8s-storage ${word}`),
    );
    expect(offered('/k8s-storage st')).toEqual(['/k8s-storage status']);
  });

  it('offers objects of the cluster after diagnose, those in trouble first', () => {
    expect(offered('/k8s-storage diagnose ')).toEqual([
      '/k8s-storage diagnose pvc/data-db-0 -n shop',
      '/k8s-storage diagnose node/n1',
      '/k8s-storage diagnose pvc/fine -n shop',
    ]);
    expect(offered('/k8s-storage diagnose n1')).toEqual(['/k8s-storage diagnose node/n1']);
  });

  it('offers names after an at sign, and no commands in threads', () => {
    expect(offered('hey @k8', true)).toEqual(['hey @k8s-storage ']);
    expect(offered('/', true)).toEqual([]);
  });

  it('leaves Enter to send what is complete, and what only might be continued', () => {
    const isEager = (typed: string) => complete(typed, false, '/k8s-storage', names, rows).isEager;
    expect(
      ['/k8s-storage diagnose', '/k8s-storage diagnose ', '/k8s-storage', '/k8s-storage dia'].map(isEager),
    ).toEqual([false, false, false, true]);
  });
});

describe('text of other people', () => {
  /** What the block renderer makes of a text, without its tags. */
  function rendered(text: object): string {
    const blocks = [tameBlock({ type: 'section', text })].filter(isSection);
    const html = renderToStaticMarkup(createElement(Message, { blocks, name: '', logo: '', withoutWrapper: true }));
    return html.replace(/<[^>]+>/g, '').replaceAll('\u2060', '');
  }

  it.each([
    '&lt;!channel&gt; &lt;@U1&gt;',
    '&lt;https://e.example|runbook&gt;',
    '&lt;img src=x onerror=alert(1)&gt;',
    '&lt;script&gt;alert(1)&lt;/script&gt; a &lt; b',
    '`&lt;!here&gt; a &lt; b`',
    '# no heading',
  ])('in Slack markup stays the text it was: %s', (text) => {
    expect(rendered({ type: 'mrkdwn', text })).toBe(text.replaceAll('`', ''));
  });

  it.each(['*a* _b_ ~c~ `d`', '[x](javascript:alert(1))', 'data_db_0 - # x'])(
    'in plain text has no markup: %s',
    (text) => {
      expect(rendered({ type: 'plain_text', text })).toBe(text);
    },
  );

  it('in plain text loses nothing that looks like HTML', () => {
    expect(rendered({ type: 'plain_text', text: '<b> <!here> &#42; a & b' })).toBe(
      '&lt;b&gt; &lt;!here&gt; &amp;#42; a &amp; b',
    );
  });

  it('keeps its colons where there is no such emoji', () => {
    expect(unknownEmoji('30')).toBe(':30:');
  });
});

it('a date is told in the zone of the reader', () => {
  const noon = Date.UTC(2026, 10, 30, 12) / 1000;
  const told = (zone: string) => slackDate(noon, '{date_short_pretty} at {time}', 'en-GB', zone, noon * 1000);
  expect([told('Europe/Berlin'), told('Asia/Singapore')]).toEqual(['today at 13:00', 'today at 20:00']);
});

it('the page is built once, in memory', async () => {
  expect(await buildPage()).toBe(await buildPage());
});
