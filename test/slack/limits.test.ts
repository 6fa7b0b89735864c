import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkBlocks, checkMessage, checkView, limits, usedBlocks } from '../../src/slack/limits.ts';

const spec = join(import.meta.dirname, '../data/slack/slackblocks/spec');
const fixtures = join(spec, 'fixtures/valid');

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(path, 'utf8'));
}

type Json = Record<string, unknown>;

/** Every kind of block and element that stands in a fixture. */
function kindsOf(value: unknown): ReadonlySet<string> {
  const kinds = new Set<string>();
  const walk = (one: unknown): void => {
    if (Array.isArray(one)) for (const item of one) walk(item);
    else if (typeof one === 'object' && one !== null) {
      const { type } = one as Json;
      if (typeof type === 'string') kinds.add(type);
      for (const item of Object.values(one)) walk(item);
    }
  };
  walk(value);
  return kinds;
}

const known = new Set([...usedBlocks, 'plain_text', 'mrkdwn', 'button', 'plain_text_input', 'modal', 'home']);
const all = ['blocks', 'messages', 'views'].flatMap((folder) =>
  readdirSync(join(fixtures, folder)).map((file) => ({
    name: `${folder}/${file}`,
    folder,
    json: readJson(join(fixtures, folder, file)),
  })),
);
/** Attachments are legacy and are not sent; what has no blocks has nothing to judge. */
const ours = all.filter(
  ({ folder, json }) =>
    [...kindsOf(json)].every((kind) => known.has(kind)) && (folder !== 'messages' || 'blocks' in (json as Json)),
);

describe('valid payloads of the slackblocks specification', () => {
  it('has enough of them that use only the blocks of this bot', () => {
    expect(ours.length).toBeGreaterThanOrEqual(10);
  });

  it.each(ours)('accepts $name', ({ folder, json }) => {
    const given = json as Json;
    const faults = folder === 'views' ? checkView(given) : checkBlocks(given['blocks'] ?? [given], 'modal');
    // Two of the messages repeat one block with its id, which the specification does not look at and Slack refuses.
    expect(faults.filter((says) => says !== '/blocks: a block_id twice')).toEqual([]);
  });

  it.each(all.filter((one) => !ours.includes(one) && one.folder === 'blocks'))(
    'refuses $name as a block that this bot does not send',
    ({ json }) => {
      expect(checkBlocks([json], 'modal')).not.toEqual([]);
    },
  );
});

const text = (length: number, type = 'plain_text') => ({ type, text: 'x'.repeat(length) });
const button = (over: Json = {}) => ({ type: 'button', text: text(3), action_id: 'a', ...over });
const inActions = (element: unknown) => checkBlocks([{ type: 'actions', elements: [element] }], 'message');
const confirm = (over: Json) =>
  inActions(button({ confirm: { title: text(1), text: text(1), confirm: text(1), deny: text(1), ...over } }));
const asInput = (over: Json) =>
  checkBlocks([{ type: 'input', label: text(3), element: { type: 'plain_text_input' }, ...over }], 'modal');
const asModal = (over: Json) => checkView({ type: 'modal', title: text(3), blocks: [{ type: 'divider' }], ...over });

/** One payload per case of `invalid/manifest.json` that concerns what this bot sends. */
const invalid: Readonly<Record<string, () => readonly string[]>> = {
  'text-empty': () => checkBlocks([{ type: 'section', text: text(0) }], 'message'),
  'text-too-long': () => checkBlocks([{ type: 'context', elements: [text(limits.text + 1)] }], 'message'),
  'button-action-id-too-long': () => inActions(button({ action_id: 'x'.repeat(256) })),
  'button-text-too-long': () => inActions(button({ text: text(76) })),
  'button-url-too-long': () => inActions(button({ url: 'x'.repeat(3001) })),
  'button-value-too-long': () => inActions(button({ value: 'x'.repeat(2001) })),
  'button-accessibility-label-too-long': () => inActions(button({ accessibility_label: 'x'.repeat(76) })),
  'confirmation-title-too-long': () => confirm({ title: text(101) }),
  'confirmation-text-too-long': () => confirm({ text: text(301) }),
  'confirmation-confirm-too-long': () => confirm({ confirm: text(31) }),
  'confirmation-deny-too-long': () => confirm({ deny: text(31) }),
  'plain-text-input-max-length-too-large': () => asInput({ element: { type: 'plain_text_input', max_length: 3001 } }),
  'actions-too-many-elements': () =>
    checkBlocks(
      [{ type: 'actions', elements: Array.from({ length: 26 }, (_, no) => button({ action_id: `a${no}` })) }],
      'message',
    ),
  'context-too-many-elements': () =>
    checkBlocks([{ type: 'context', elements: Array.from({ length: 11 }, () => text(1)) }], 'message'),
  'context-invalid-element': () => checkBlocks([{ type: 'context', elements: [button()] }], 'message'),
  'header-text-too-long': () => checkBlocks([{ type: 'header', text: text(151) }], 'message'),
  'input-label-too-long': () => asInput({ label: text(2001) }),
  'input-hint-too-long': () => asInput({ hint: text(2001) }),
  'input-invalid-element': () => asInput({ element: button() }),
  'section-text-too-long': () => checkBlocks([{ type: 'section', text: text(3001) }], 'message'),
  'section-too-many-fields': () =>
    checkBlocks([{ type: 'section', fields: Array.from({ length: 11 }, () => text(1)) }], 'message'),
  'section-field-too-long': () => checkBlocks([{ type: 'section', fields: [text(2001)] }], 'message'),
  'section-missing-content': () => checkBlocks([{ type: 'section' }], 'message'),
  'block-id-too-long': () => checkBlocks([{ type: 'divider', block_id: 'x'.repeat(256) }], 'message'),
  'view-missing-blocks': () => asModal({ blocks: [] }),
  'view-too-many-blocks': () => asModal({ blocks: Array.from({ length: 101 }, () => ({ type: 'divider' })) }),
  'view-private-metadata-too-long': () => asModal({ private_metadata: 'x'.repeat(3001) }),
  'view-callback-id-too-long': () => asModal({ callback_id: 'x'.repeat(256) }),
  'view-title-too-long': () => asModal({ title: text(25) }),
  'view-close-too-long': () => asModal({ close: text(25) }),
  'view-submit-too-long': () => asModal({ submit: text(25) }),
};

/** Cases about blocks and elements that the checker refuses whole, because this bot sends none of them. */
const notSent =
  /^(option|select|overflow|checkboxes|radio|url-source|table|file-input|image|markdown|video|static-select|number-input|alert|card|carousel|container|feedback|context-actions|icon-button|data|pie|chart|axis)/;

describe('payloads that the slackblocks specification wants refused', () => {
  const manifest = readJson(join(spec, 'fixtures/invalid/manifest.json')) as {
    readonly cases: readonly { readonly id: string }[];
  };

  it('knows every case, or does not send the block at all', () => {
    expect(manifest.cases.map(({ id }) => id).filter((id) => !(id in invalid) && !notSent.test(id))).toEqual([]);
  });

  it.each(Object.entries(invalid))('refuses %s, and for one reason', (_id, check) => {
    expect(check()).toHaveLength(1);
  });
});

it('has the numbers of the specification', () => {
  const given = readJson(join(spec, 'limits.json')) as Record<string, Record<string, Record<string, unknown>>>;
  const at = (path: string) => path.split('.').reduce<unknown>((value, key) => (value as Json)[key], given);
  const pairs: readonly (readonly [number, string])[] = [
    [limits.text, 'text.max_length'],
    [limits.blockId, 'block_id.max_length'],
    [limits.actionId, 'action_id.max_length'],
    [limits.header, 'header.text.max_length'],
    [limits.section, 'section.text.max_length'],
    [limits.fields.items, 'section.fields.max_items'],
    [limits.fields.text, 'section.fields.item_max_length'],
    [limits.context, 'context.elements.max_items'],
    [limits.actions, 'actions.elements.max_items'],
    [limits.button.text, 'button.text.max_length'],
    [limits.button.value, 'button.value.max_length'],
    [limits.button.url, 'button.url.max_length'],
    [limits.button.label, 'button.accessibility_label.max_length'],
    [limits.confirm.title, 'confirmation.title.max_length'],
    [limits.confirm.text, 'confirmation.text.max_length'],
    [limits.confirm.confirm, 'confirmation.confirm.max_length'],
    [limits.confirm.deny, 'confirmation.deny.max_length'],
    [limits.input.label, 'input.label.max_length'],
    [limits.input.hint, 'input.hint.max_length'],
    [limits.plainTextInput, 'plain_text_input.max_length.max'],
    [limits.placeholder, 'select.placeholder.max_length'],
    [limits.blocks.modal, 'view.blocks.max_items'],
    [limits.view.title, 'view.title.max_length'],
    [limits.view.submit, 'view.submit.max_length'],
    [limits.view.close, 'view.close.max_length'],
    [limits.view.privateMetadata, 'view.private_metadata.max_length'],
    [limits.view.callbackId, 'view.callback_id.max_length'],
  ];
  expect(pairs.filter(([number, path]) => at(path) !== number)).toEqual([]);
});

it('counts code points, as Slack does', () => {
  expect(
    checkMessage({ text: 'x', blocks: [{ type: 'header', text: { type: 'plain_text', text: '𝒳'.repeat(150) } }] }),
  ).toEqual([]);
});

it('refuses a message without text, with 51 blocks, or with a block_id twice', () => {
  expect(checkMessage({ text: '', blocks: [] })).toHaveLength(1);
  expect(checkMessage({ text: 'x', blocks: Array.from({ length: 51 }, () => ({ type: 'divider' })) })).toHaveLength(1);
  expect(
    checkMessage({
      text: 'x',
      blocks: [
        { type: 'divider', block_id: 'a' },
        { type: 'divider', block_id: 'a' },
      ],
    }),
  ).toHaveLength(1);
});
