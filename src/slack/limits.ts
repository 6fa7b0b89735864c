/**
 * Slack's limits on what this bot sends, checked before it is sent: Slack refuses a whole message for one field that is
 * too long. Numbers of the slackblocks specification (`spec/limits.json`), which count code points.
 */
import { lengthOf } from './views/text.ts';

export const limits = {
  blocks: { message: 50, modal: 100, home: 100 },
  text: 3000,
  blockId: 255,
  actionId: 255,
  header: 150,
  section: 3000,
  fields: { items: 10, text: 2000 },
  context: 10,
  actions: 25,
  button: { text: 75, value: 2000, url: 3000, label: 75 },
  confirm: { title: 100, text: 300, confirm: 30, deny: 30 },
  input: { label: 2000, hint: 2000 },
  plainTextInput: 3000,
  placeholder: 150,
  image: { altText: 2000 },
  view: { title: 24, submit: 24, close: 24, privateMetadata: 3000, callbackId: 255 },
  /** `chat.update` refuses more with `msg_too_long`. */
  topLevelText: 4000,
} as const;

/** The kinds of blocks that this bot sends. Another one is a mistake here, whatever Slack would say. */
export const usedBlocks: readonly string[] = ['section', 'header', 'context', 'actions', 'divider', 'input', 'image'];

type Place = keyof typeof limits.blocks;
type Json = Readonly<Record<string, unknown>>;

/** What is wrong with blocks for that place, each with its path; empty when Slack takes them. */
export function checkBlocks(blocks: unknown, place: Place): readonly string[] {
  const faults: string[] = [];
  if (!Array.isArray(blocks)) return ['/blocks: no list'];
  if (blocks.length > limits.blocks[place]) faults.push(`/blocks: ${blocks.length}, ${limits.blocks[place]} at most`);
  const ids: unknown[] = [];
  blocks.forEach((block: unknown, no) => {
    const at = `/blocks/${no}`;
    if (!isObject(block)) {
      faults.push(`${at}: no object`);
      return;
    }
    if (block['block_id'] !== undefined) ids.push(block['block_id']);
    checkBlock(block, place, at, faults);
  });
  if (new Set(ids).size < ids.length) faults.push('/blocks: a block_id twice');
  return faults;
}

/** The same for a message: its text stands for it in notifications and to screen readers, so it may not be missing. */
export function checkMessage(message: { readonly text: string; readonly blocks: unknown }): readonly string[] {
  const faults = [...checkBlocks(message.blocks, 'message')];
  checkString(message.text, 1, limits.topLevelText, '/text', faults);
  return faults;
}

/** The same for what `views.open` and `views.publish` take. */
export function checkView(view: unknown): readonly string[] {
  if (!isObject(view)) return ['/: no object'];
  const { type } = view;
  if (type !== 'modal' && type !== 'home') return ['/type: neither modal nor home'];
  const blocks = view['blocks'];
  const faults = [...checkBlocks(blocks, type)];
  if (Array.isArray(blocks) && blocks.length === 0) faults.push('/blocks: none');
  optional(view['private_metadata'], limits.view.privateMetadata, '/private_metadata', faults);
  optional(view['callback_id'], limits.view.callbackId, '/callback_id', faults);
  if (type === 'home') return faults;
  checkText(view['title'], limits.view.title, '/title', faults, true);
  if (view['submit'] !== undefined) checkText(view['submit'], limits.view.submit, '/submit', faults, true);
  if (view['close'] !== undefined) checkText(view['close'], limits.view.close, '/close', faults, true);
  return faults;
}

function checkBlock(block: Json, place: Place, at: string, faults: string[]): void {
  optional(block['block_id'], limits.blockId, `${at}/block_id`, faults);
  switch (block['type']) {
    case 'section':
      checkSection(block, at, faults);
      return;
    case 'header':
      checkText(block['text'], limits.header, `${at}/text`, faults, true);
      return;
    case 'context':
      each(block['elements'], limits.context, `${at}/elements`, faults, (element, path) =>
        checkText(element, limits.text, path, faults),
      );
      return;
    case 'actions':
      checkActions(block, at, faults);
      return;
    case 'input':
      if (place === 'message') faults.push(`${at}: no inputs in messages`);
      checkInput(block, at, faults);
      return;
    case 'image':
      checkString(block['alt_text'], 1, limits.image.altText, `${at}/alt_text`, faults);
      if ((block['image_url'] === undefined) === (block['slack_file'] === undefined))
        faults.push(`${at}: neither or both of image_url and slack_file`);
      return;
    case 'divider':
      return;
    default:
      faults.push(`${at}/type: ${String(block['type'])} is not used here`);
  }
}

function checkSection(block: Json, at: string, faults: string[]): void {
  const { text, fields, accessory } = block;
  if (text === undefined && fields === undefined) faults.push(`${at}: neither text nor fields`);
  if (text !== undefined) checkText(text, limits.section, `${at}/text`, faults);
  if (fields !== undefined) {
    each(fields, limits.fields.items, `${at}/fields`, faults, (field, path) =>
      checkText(field, limits.fields.text, path, faults),
    );
  }
  if (accessory !== undefined) checkButton(accessory, `${at}/accessory`, faults);
}

function checkActions(block: Json, at: string, faults: string[]): void {
  const ids: unknown[] = [];
  each(block['elements'], limits.actions, `${at}/elements`, faults, (element, path) => {
    if (element['action_id'] !== undefined) ids.push(element['action_id']);
    checkButton(element, path, faults);
  });
  if (new Set(ids).size < ids.length) faults.push(`${at}: an action_id twice`);
}

function checkButton(element: unknown, at: string, faults: string[]): void {
  if (!isObject(element) || element['type'] !== 'button') {
    faults.push(`${at}: no button`);
    return;
  }
  optional(element['action_id'], limits.actionId, `${at}/action_id`, faults);
  checkText(element['text'], limits.button.text, `${at}/text`, faults, true);
  optional(element['value'], limits.button.value, `${at}/value`, faults);
  optional(element['url'], limits.button.url, `${at}/url`, faults);
  optional(element['accessibility_label'], limits.button.label, `${at}/accessibility_label`, faults);
  const { style, confirm } = element;
  if (style !== undefined && style !== 'primary' && style !== 'danger')
    faults.push(`${at}/style: ${JSON.stringify(style)}`);
  if (confirm === undefined) return;
  for (const key of ['title', 'text', 'confirm', 'deny'] as const) {
    if (isObject(confirm)) checkText(confirm[key], limits.confirm[key], `${at}/confirm/${key}`, faults);
  }
}

function checkInput(block: Json, at: string, faults: string[]): void {
  checkText(block['label'], limits.input.label, `${at}/label`, faults, true);
  if (block['hint'] !== undefined) checkText(block['hint'], limits.input.hint, `${at}/hint`, faults, true);
  const { element } = block;
  if (!isObject(element) || element['type'] !== 'plain_text_input') {
    faults.push(`${at}/element: no plain_text_input`);
    return;
  }
  optional(element['action_id'], limits.actionId, `${at}/element/action_id`, faults);
  if (element['placeholder'] !== undefined)
    checkText(element['placeholder'], limits.placeholder, `${at}/element/placeholder`, faults, true);
  const most = element['max_length'];
  if (typeof most === 'number' && most > limits.plainTextInput) faults.push(`${at}/element/max_length: ${most}`);
}

function checkText(text: unknown, most: number, at: string, faults: string[], isPlain = false): void {
  if (!isObject(text) || (text['type'] !== 'plain_text' && (isPlain || text['type'] !== 'mrkdwn'))) {
    faults.push(`${at}: no ${isPlain ? 'plain_text' : 'text'}`);
    return;
  }
  checkString(text['text'], 1, most, `${at}/text`, faults);
}

function each(
  list: unknown,
  most: number,
  at: string,
  faults: string[],
  check: (item: Json, path: string) => void,
): void {
  if (!Array.isArray(list) || list.length === 0) {
    faults.push(`${at}: none`);
    return;
  }
  if (list.length > most) faults.push(`${at}: ${list.length}, ${most} at most`);
  list.forEach((item: unknown, no) => {
    if (isObject(item)) check(item, `${at}/${no}`);
    else faults.push(`${at}/${no}: no object`);
  });
}

function optional(value: unknown, most: number, at: string, faults: string[]): void {
  if (value !== undefined && value !== null) checkString(value, 0, most, at, faults);
}

function checkString(value: unknown, least: number, most: number, at: string, faults: string[]): void {
  if (typeof value !== 'string') faults.push(`${at}: no string`);
  else if (value.length < least) faults.push(`${at}: empty`);
  else if (value.length > most && lengthOf(value) > most)
    faults.push(`${at}: ${lengthOf(value)} characters, ${most} at most`);
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
