import { describe, expect, it } from 'vitest';
import { checkBlocks, checkView } from '../../../src/playground/slack/block-kit.ts';
import { modal } from './fake-bot.ts';

function plain(length: number) {
  return { type: 'plain_text', text: 'x'.repeat(length) };
}
function section(length: number) {
  return { type: 'section', text: { type: 'mrkdwn', text: 'x'.repeat(length) } };
}
function button(more: object) {
  return { type: 'actions', elements: [{ type: 'button', action_id: 'a', text: plain(1), ...more }] };
}
function many<T>(count: number, make: (index: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}
const option = (index: number) => ({ text: plain(1), value: String(index) });

describe('a limit of Block Kit', () => {
  it.each([
    ['blocks of a message', many(50, () => section(1)), many(51, () => section(1)), '/blocks'],
    ['section text', [section(3000)], [section(3001)], '/blocks/0/text/text'],
    ['text that is not empty', [section(1)], [section(0)], '/blocks/0/text/text'],
    ['header', [{ type: 'header', text: plain(150) }], [{ type: 'header', text: plain(151) }], '/blocks/0/text/text'],
    ['button text', [button({ text: plain(75) })], [button({ text: plain(76) })], '/blocks/0/elements/0/text/text'],
    [
      'button value',
      [button({ value: 'x'.repeat(2000) })],
      [button({ value: 'x'.repeat(2001) })],
      '/blocks/0/elements/0/value',
    ],
    ['button style', [button({ style: 'danger' })], [button({ style: 'green' })], '/blocks/0/elements/0/style'],
    [
      'block ids',
      [
        { ...section(1), block_id: 'a' },
        { ...section(1), block_id: 'b' },
      ],
      [
        { ...section(1), block_id: 'a' },
        { ...section(1), block_id: 'a' },
      ],
      '/blocks/1/block_id',
    ],
    [
      'length of a block id',
      [{ ...section(1), block_id: 'x'.repeat(255) }],
      [{ ...section(1), block_id: 'x'.repeat(256) }],
      '/blocks/0/block_id',
    ],
    [
      'section fields',
      [{ type: 'section', fields: many(10, () => plain(2000)) }],
      [{ type: 'section', fields: many(11, () => plain(1)) }],
      '/blocks/0/fields',
    ],
    [
      'context elements',
      [{ type: 'context', elements: many(10, () => plain(1)) }],
      [{ type: 'context', elements: many(11, () => plain(1)) }],
      '/blocks/0/elements',
    ],
    [
      'overflow options',
      [{ ...section(1), accessory: { type: 'overflow', action_id: 'a', options: many(5, option) } }],
      [{ ...section(1), accessory: { type: 'overflow', action_id: 'a', options: many(6, option) } }],
      '/blocks/0/accessory/options',
    ],
    ['kinds of blocks in a message', [{ type: 'divider' }], [{ type: 'alert', text: plain(1) }], '/blocks/0/type'],
  ])('%s: the most passes, one more is refused at its place', (_, good, bad, pointer) => {
    expect(checkBlocks(good, 'message')).toEqual([]);
    expect(checkBlocks(bad, 'message')).toEqual([expect.stringContaining(`[json-pointer:${pointer}]`)]);
  });

  it('counts code points, not UTF-16 units', () => {
    expect(checkBlocks([{ type: 'header', text: { type: 'plain_text', text: '🟢'.repeat(150) } }], 'message')).toEqual(
      [],
    );
  });
});

describe('a view', () => {
  it.each([
    ['a title over 24 characters', { title: plain(25) }, '/view/title/text'],
    ['private_metadata over 3,000 characters', { private_metadata: 'x'.repeat(3001) }, '/view/private_metadata'],
    ['inputs without a submit button', { submit: undefined }, '/view'],
    ['no blocks', { blocks: [] }, '/view/blocks'],
    ['more than 100 blocks', { blocks: many(101, () => section(1)) }, '/view/blocks'],
  ])('is refused with %s', (_, change, pointer) => {
    expect(checkView(modal)).toEqual([]);
    expect(checkView({ ...modal, ...change })).toEqual([expect.stringContaining(`[json-pointer:${pointer}]`)]);
  });
});
