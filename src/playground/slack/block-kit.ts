import limits from './data/limits.json' with { type: 'json' };
import { isObject, type JsonObject } from './json.ts';

/** Where blocks are shown; the limits and the allowed kinds differ. */
export type Surface = 'message' | 'modal' | 'home';

/** Most blocks that Slack takes per surface (docs.slack.dev, `reference/block-kit/blocks`). */
const mostBlocks = { message: 50, modal: 100, home: 100 } as const;

const onSurface: Readonly<Record<string, readonly Surface[]>> = {
  actions: ['message', 'modal', 'home'],
  alert: ['modal'],
  card: ['message', 'home'],
  carousel: ['message', 'home'],
  container: ['message', 'modal', 'home'],
  context: ['message', 'modal', 'home'],
  context_actions: ['message'],
  data_table: ['message'],
  data_visualization: ['message'],
  divider: ['message', 'modal', 'home'],
  header: ['message', 'modal', 'home'],
  image: ['message', 'modal', 'home'],
  input: ['message', 'modal', 'home'],
  markdown: ['message'],
  plan: ['message'],
  rich_text: ['message', 'modal', 'home'],
  section: ['message', 'modal', 'home'],
  table: ['message'],
  task_card: ['message'],
  video: ['message', 'modal', 'home'],
};

const interactive = new Set([
  'button',
  'checkboxes',
  'channels_select',
  'conversations_select',
  'datepicker',
  'datetimepicker',
  'external_select',
  'multi_channels_select',
  'multi_conversations_select',
  'multi_external_select',
  'multi_static_select',
  'multi_users_select',
  'overflow',
  'radio_buttons',
  'static_select',
  'timepicker',
  'users_select',
  'workflow_button',
]);

const inputs = new Set([
  ...[...interactive].filter((type) => !['button', 'overflow', 'workflow_button'].includes(type)),
  'email_text_input',
  'file_input',
  'number_input',
  'plain_text_input',
  'rich_text_input',
  'url_text_input',
]);

/**
 * What is wrong with `blocks` on that surface, in the words that Slack puts into `response_metadata.messages`;
 * empty when Slack would take them. The numbers are those of the slackblocks specification.
 */
export function checkBlocks(blocks: unknown, surface: Surface, at = '/blocks'): readonly string[] {
  const faults: string[] = [];
  if (!Array.isArray(blocks)) return [fault('must be an array', at)];
  if (blocks.length > mostBlocks[surface]) faults.push(fault(`no more than ${mostBlocks[surface]} items allowed`, at));
  const seen = new Set<string>();
  let markdown = 0;
  let tables = 0;
  blocks.forEach((block: unknown, index) => {
    const pointer = `${at}/${index}`;
    if (!isObject(block)) {
      faults.push(fault('must be an object', pointer));
      return;
    }
    const blockId = block['block_id'];
    if (typeof blockId === 'string') {
      if (seen.has(blockId)) faults.push(fault('`block_id` must be unique', `${pointer}/block_id`));
      seen.add(blockId);
    }
    if (block['type'] === 'table') tables += 1;
    if (block['type'] === 'markdown' && typeof block['text'] === 'string') markdown += lengthOf(block['text']);
    checkBlock(block, surface, pointer, faults);
  });
  if (tables > 1) faults.push(fault('no more than 1 table allowed', at));
  if (markdown > limits.markdown.text.max_length)
    faults.push(fault(`must be less than ${limits.markdown.text.max_length + 1} characters`, at));
  return faults;
}

/** The same for a whole view, as `views.open` takes it. */
export function checkView(view: unknown): readonly string[] {
  if (!isObject(view)) return [fault('must be an object', '/view')];
  const faults: string[] = [];
  const type = view['type'];
  if (type !== 'modal' && type !== 'home') return [fault('must be one of modal, home', '/view/type')];
  if (type === 'modal') {
    checkText(view['title'], { most: limits.view.title.max_length, plain: true }, '/view/title', faults);
    checkOptionalText(view, 'submit', limits.view.submit.max_length, '/view', faults);
    checkOptionalText(view, 'close', limits.view.close.max_length, '/view', faults);
  }
  checkString(view, 'private_metadata', limits.view.private_metadata.max_length, '/view', faults);
  checkString(view, 'callback_id', limits.view.callback_id.max_length, '/view', faults);
  checkString(view, 'external_id', 255, '/view', faults);
  const blocks = view['blocks'];
  if (Array.isArray(blocks) && blocks.length === 0) faults.push(fault('no fewer than 1 items allowed', '/view/blocks'));
  faults.push(...checkBlocks(blocks, type, '/view/blocks'));
  const needsSubmit =
    type === 'modal' &&
    Array.isArray(blocks) &&
    blocks.some((block: unknown) => isObject(block) && block['type'] === 'input') &&
    view['submit'] === undefined;
  if (needsSubmit) faults.push(fault('missing required field: submit', '/view'));
  return faults;
}

function checkBlock(block: JsonObject, surface: Surface, at: string, faults: string[]): void {
  checkString(block, 'block_id', limits.block_id.max_length, at, faults);
  const type = block['type'];
  const where = typeof type === 'string' ? onSurface[type] : undefined;
  if (!where?.includes(surface)) {
    faults.push(fault(`unsupported type: ${String(type)}`, `${at}/type`));
    return;
  }
  switch (type) {
    case 'section':
      checkSection(block, at, faults);
      return;
    case 'header':
      checkText(block['text'], { most: limits.header.text.max_length, plain: true }, `${at}/text`, faults);
      return;
    case 'context':
      checkItems(block, 'elements', 1, limits.context.elements.max_items, at, faults, (element, pointer) =>
        element['type'] === 'image'
          ? checkImage(element, pointer, faults)
          : checkText(element, { most: limits.text.max_length }, pointer, faults),
      );
      return;
    case 'actions':
      checkActions(block, at, faults);
      return;
    case 'input':
      checkInput(block, at, faults);
      return;
    case 'image':
      checkImage(block, at, faults);
      return;
    case 'markdown':
      checkString(block, 'text', limits.markdown.text.max_length, at, faults, 1);
      return;
    case 'rich_text':
      checkItems(block, 'elements', 0, Number.POSITIVE_INFINITY, at, faults, () => undefined);
      return;
    case 'table':
      checkTable(block, at, faults);
      return;
    default:
      return;
  }
}

function checkSection(block: JsonObject, at: string, faults: string[]): void {
  const { text, fields, accessory } = block;
  if (text === undefined && fields === undefined) faults.push(fault('missing required field: text', at));
  if (text !== undefined) checkText(text, { most: limits.section.text.max_length }, `${at}/text`, faults);
  if (fields !== undefined) {
    const most = limits.section.fields.item_max_length;
    checkItems(block, 'fields', 1, limits.section.fields.max_items, at, faults, (field, pointer) =>
      checkText(field, { most }, pointer, faults),
    );
  }
  if (isObject(accessory)) {
    if (accessory['type'] === 'image') checkImage(accessory, `${at}/accessory`, faults);
    else checkElement(accessory, interactive, `${at}/accessory`, faults);
  }
}

function checkActions(block: JsonObject, at: string, faults: string[]): void {
  const seen = new Set<string>();
  checkItems(block, 'elements', 1, limits.actions.elements.max_items, at, faults, (element, pointer) => {
    checkElement(element, interactive, pointer, faults);
    const id = element['action_id'];
    if (typeof id !== 'string') return;
    if (seen.has(id)) faults.push(fault('`action_id` must be unique', `${pointer}/action_id`));
    seen.add(id);
  });
}

function checkInput(block: JsonObject, at: string, faults: string[]): void {
  checkText(block['label'], { most: limits.input.label.max_length, plain: true }, `${at}/label`, faults);
  checkOptionalText(block, 'hint', limits.input.hint.max_length, at, faults);
  const element = block['element'];
  if (!isObject(element)) {
    faults.push(fault('missing required field: element', at));
    return;
  }
  checkElement(element, inputs, `${at}/element`, faults);
}

function checkElement(element: JsonObject, allowed: ReadonlySet<string>, at: string, faults: string[]): void {
  const type = element['type'];
  if (typeof type !== 'string' || !allowed.has(type)) {
    faults.push(fault(`unsupported type: ${String(type)}`, `${at}/type`));
    return;
  }
  checkString(element, 'action_id', limits.action_id.max_length, at, faults, 1);
  checkOptionalText(element, 'placeholder', limits.select.placeholder.max_length, at, faults);
  if (isObject(element['confirm'])) checkConfirm(element['confirm'], `${at}/confirm`, faults);
  switch (type) {
    case 'button':
      checkText(element['text'], { most: limits.button.text.max_length, plain: true }, `${at}/text`, faults);
      checkString(element, 'value', limits.button.value.max_length, at, faults);
      checkString(element, 'url', limits.button.url.max_length, at, faults);
      checkString(element, 'accessibility_label', limits.button.accessibility_label.max_length, at, faults);
      if (element['style'] !== undefined && element['style'] !== 'primary' && element['style'] !== 'danger')
        faults.push(fault('must be one of primary, danger', `${at}/style`));
      return;
    case 'overflow':
      checkOptions(element, limits.overflow.options.max_items, at, faults);
      return;
    case 'checkboxes':
      checkOptions(element, limits.checkboxes.options.max_items, at, faults);
      return;
    case 'radio_buttons':
      checkOptions(element, limits.radio_buttons.options.max_items, at, faults);
      return;
    case 'static_select':
    case 'multi_static_select':
      if (element['option_groups'] === undefined) {
        checkOptions(element, limits.select.options.max_items, at, faults);
        return;
      }
      checkItems(element, 'option_groups', 1, limits.select.option_groups.max_items, at, faults, (group, pointer) => {
        const most = limits.option_group.label.max_length;
        checkText(group['label'], { most, plain: true }, `${pointer}/label`, faults);
        checkOptions(group, limits.option_group.options.max_items, pointer, faults);
      });
      return;
    case 'plain_text_input': {
      const most = element['max_length'];
      if (typeof most === 'number' && most > limits.plain_text_input.max_length.max)
        faults.push(fault(`must be less than ${limits.plain_text_input.max_length.max + 1}`, `${at}/max_length`));
      return;
    }
    default:
      return;
  }
}

function checkOptions(element: JsonObject, most: number, at: string, faults: string[]): void {
  checkItems(element, 'options', 1, most, at, faults, (option, pointer) => {
    checkText(option['text'], { most: limits.option.text.max_length }, `${pointer}/text`, faults);
    checkString(option, 'value', limits.option.value.max_length, pointer, faults, 0);
    checkOptionalText(option, 'description', limits.option.description.max_length, pointer, faults);
  });
}

function checkConfirm(confirm: JsonObject, at: string, faults: string[]): void {
  for (const key of ['title', 'text', 'confirm', 'deny'] as const) {
    const most = limits.confirmation[key].max_length;
    if (confirm[key] !== undefined || key !== 'deny') checkText(confirm[key], { most }, `${at}/${key}`, faults);
  }
}

function checkTable(block: JsonObject, at: string, faults: string[]): void {
  const rows = block['rows'];
  if (!Array.isArray(rows) || rows.length === 0) {
    faults.push(fault('no fewer than 1 items allowed', `${at}/rows`));
    return;
  }
  if (rows.length > 100) faults.push(fault('no more than 100 items allowed', `${at}/rows`));
  rows.forEach((row: unknown, index) => {
    if (!Array.isArray(row)) faults.push(fault('must be an array', `${at}/rows/${index}`));
    else if (row.length > 20) faults.push(fault('no more than 20 items allowed', `${at}/rows/${index}`));
  });
}

function checkImage(element: JsonObject, at: string, faults: string[]): void {
  const file = element['slack_file'];
  if ((element['image_url'] === undefined) === (file === undefined))
    faults.push(fault('must have either image_url or slack_file', at));
  if (file !== undefined && (!isObject(file) || (file['id'] === undefined) === (file['url'] === undefined)))
    faults.push(fault('must have either id or url', `${at}/slack_file`));
  checkString(element, 'image_url', limits.image.image_url.max_length, at, faults);
  checkString(element, 'alt_text', limits.image.alt_text.max_length, at, faults, 1);
}

function checkItems(
  owner: JsonObject,
  key: string,
  fewest: number,
  most: number,
  at: string,
  faults: string[],
  check: (item: JsonObject, pointer: string) => void,
): void {
  const items = owner[key];
  const pointer = `${at}/${key}`;
  if (!Array.isArray(items)) {
    faults.push(fault(`missing required field: ${key}`, at));
    return;
  }
  if (items.length < fewest) faults.push(fault(`no fewer than ${fewest} items allowed`, pointer));
  if (items.length > most) faults.push(fault(`no more than ${most} items allowed`, pointer));
  items.forEach((item: unknown, index) => {
    if (isObject(item)) check(item, `${pointer}/${index}`);
    else faults.push(fault('must be an object', `${pointer}/${index}`));
  });
}

function checkOptionalText(owner: JsonObject, key: string, most: number, at: string, faults: string[]): void {
  if (owner[key] !== undefined && owner[key] !== null)
    checkText(owner[key], { most, plain: true }, `${at}/${key}`, faults);
}

function checkText(
  text: unknown,
  rule: { readonly most: number; readonly plain?: boolean },
  at: string,
  faults: string[],
): void {
  if (!isObject(text)) {
    faults.push(fault('missing required field', at));
    return;
  }
  const type = text['type'];
  if (type !== 'plain_text' && (rule.plain || type !== 'mrkdwn'))
    faults.push(fault(`unsupported type: ${String(type)}`, `${at}/type`));
  checkString(text, 'text', rule.most, at, faults, 1);
}

/** `fewest` set also means that the field is required. */
function checkString(
  owner: JsonObject,
  key: string,
  most: number,
  at: string,
  faults: string[],
  fewest?: number,
): void {
  const value = owner[key];
  if (value === undefined || value === null) {
    if (fewest !== undefined && key !== 'action_id') faults.push(fault(`missing required field: ${key}`, at));
    return;
  }
  if (typeof value !== 'string') {
    faults.push(fault('must be a string', `${at}/${key}`));
    return;
  }
  if (fewest !== undefined && lengthOf(value) < fewest)
    faults.push(fault(`must be more than ${fewest - 1} characters`, `${at}/${key}`));
  if (lengthOf(value) > most) faults.push(fault(`must be less than ${most + 1} characters`, `${at}/${key}`));
}

/** Slack counts code points, not UTF-16 units. */
function lengthOf(text: string): number {
  return [...text].length;
}

function fault(says: string, pointer: string): string {
  return `[ERROR] ${says} [json-pointer:${pointer}]`;
}
