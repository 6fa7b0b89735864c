import { type JsonObject, objectAt, objectsAt, stringAt } from './json.ts';
import { withIds } from './messages.ts';
import type { Outside } from './outside.ts';
import { app, team } from './people.ts';

/** A modal or Home tab as it stands for one person. `given` is what the app sent, ids filled in. */
export type View = {
  readonly id: string;
  readonly user: string;
  readonly given: JsonObject;
  readonly hash: string;
  readonly rootId: string;
  readonly previousId: string | null;
  readonly values: JsonObject;
};

/** How many modals may lie on each other. */
const deepest = 3;

/** The modals and Home tabs of everybody. */
export type Views = {
  /** Opens a modal on an empty stack: what stood there is dropped, as Slack does. */
  open(user: string, given: JsonObject): View;
  /** `undefined` when three modals are open already. */
  push(user: string, given: JsonObject): View | undefined;
  /** Replaces the content; `'hash_conflict'` when `hash` is set and old, `undefined` when there is no such view. */
  update(id: string, given: JsonObject, hash?: string): View | 'hash_conflict' | undefined;
  publish(user: string, given: JsonObject, hash?: string): View | 'hash_conflict';
  find(id: string): View | undefined;
  findExternal(externalId: string): View | undefined;
  /** Closes the topmost modal, or all of them. */
  pop(user: string): void;
  closeAll(user: string): void;
  top(user: string): View | undefined;
  home(user: string): View | undefined;
  setValues(id: string, values: JsonObject): View | undefined;
  clear(): void;
};

/** Makes an empty set of views; `changed` hears of every change with the person whose screen it is. */
export function createViews(outside: Outside, changed: (user: string) => void): Views {
  const stacks = new Map<string, View[]>();
  const homes = new Map<string, View>();

  function stackOf(user: string): View[] {
    const stack = stacks.get(user) ?? [];
    stacks.set(user, stack);
    return stack;
  }

  function make(user: string, given: JsonObject, below: View | undefined): View {
    const id = `V0${outside.ids().replaceAll('-', '').slice(0, 9).toUpperCase()}`;
    return {
      id,
      user,
      given: { ...given, blocks: withIds(objectsAt(given, 'blocks'), outside) },
      hash: newHash(),
      rootId: below?.rootId ?? id,
      previousId: below?.id ?? null,
      values: {},
    };
  }

  function newHash(): string {
    return `${Math.floor(outside.clock.now() / 1000)}.${outside.ids().slice(0, 8)}`;
  }

  function all(): readonly View[] {
    return [...[...stacks.values()].flat(), ...homes.values()];
  }

  function put(view: View): View {
    const stack = stackOf(view.user);
    const index = stack.findIndex((each) => each.id === view.id);
    if (index >= 0) stack[index] = view;
    else homes.set(view.user, view);
    changed(view.user);
    return view;
  }

  return {
    open(user, given) {
      const view = make(user, given, undefined);
      stacks.set(user, [view]);
      changed(user);
      return view;
    },
    push(user, given) {
      const stack = stackOf(user);
      if (stack.length >= deepest) return undefined;
      const view = make(user, given, stack.at(-1));
      stack.push(view);
      changed(user);
      return view;
    },
    update(id, given, hash) {
      const view = all().find((each) => each.id === id);
      if (view === undefined) return undefined;
      if (hash !== undefined && hash !== view.hash) return 'hash_conflict';
      return put({
        ...view,
        given: { ...given, blocks: withIds(objectsAt(given, 'blocks'), outside) },
        hash: newHash(),
      });
    },
    publish(user, given, hash) {
      const old = homes.get(user);
      if (old !== undefined && hash !== undefined && hash !== old.hash) return 'hash_conflict';
      const view = make(user, given, undefined);
      homes.set(user, old === undefined ? view : { ...view, id: old.id, rootId: old.rootId });
      changed(user);
      return homes.get(user) ?? view;
    },
    find: (id) => all().find((view) => view.id === id),
    findExternal: (externalId) =>
      externalId === '' ? undefined : all().find((view) => stringAt(view.given, 'external_id') === externalId),
    pop(user) {
      stackOf(user).pop();
      changed(user);
    },
    closeAll(user) {
      stacks.set(user, []);
      changed(user);
    },
    top: (user) => stackOf(user).at(-1),
    home: (user) => homes.get(user),
    setValues(id, values) {
      const view = all().find((each) => each.id === id);
      return view === undefined ? undefined : put({ ...view, values });
    },
    clear() {
      const users = new Set([...stacks.keys(), ...homes.keys()]);
      stacks.clear();
      homes.clear();
      for (const user of users) changed(user);
    },
  };
}

/** The view as Slack writes it into payloads and answers, every key present. */
export function writeView(view: View): JsonObject {
  const { given } = view;
  return {
    id: view.id,
    team_id: team.id,
    type: stringAt(given, 'type'),
    blocks: objectsAt(given, 'blocks'),
    private_metadata: stringAt(given, 'private_metadata'),
    callback_id: stringAt(given, 'callback_id'),
    state: { values: view.values },
    hash: view.hash,
    title: given['title'] ?? { type: 'plain_text', text: 'View Title', emoji: true },
    clear_on_close: given['clear_on_close'] === true,
    notify_on_close: given['notify_on_close'] === true,
    close: given['close'] ?? null,
    submit: given['submit'] ?? null,
    submit_disabled: given['submit_disabled'] === true,
    previous_view_id: view.previousId,
    root_view_id: view.rootId,
    app_id: app.id,
    external_id: stringAt(given, 'external_id'),
    app_installed_team_id: team.id,
    bot_id: app.botId,
  };
}

/** The input blocks of a view with their elements. */
export function inputsOf(
  view: View,
): readonly { readonly blockId: string; readonly element: JsonObject; readonly optional: boolean }[] {
  return objectsAt(view.given, 'blocks')
    .filter((block) => block['type'] === 'input')
    .map((block) => ({
      blockId: stringAt(block, 'block_id'),
      element: objectAt(block, 'element'),
      optional: block['optional'] === true,
    }));
}
