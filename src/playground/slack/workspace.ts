import { createDelivery, type Delivery, type DeliveryOptions } from './delivery.ts';
import { createMessages, type MessageChange, type Messages } from './messages.ts';
import type { Outside } from './outside.ts';
import { createTickets, type Tickets } from './tickets.ts';
import { createViews, type Views } from './views.ts';

/** A file whose upload was announced; `bytes` are there once it was sent, and it may be shown once it is complete. */
export type Upload = {
  readonly id: string;
  readonly name: string;
  readonly length: number;
  bytes: Buffer | undefined;
  isComplete: boolean;
};

/** What a watcher hears of. */
export type Change = MessageChange | { readonly kind: 'views'; readonly user: string };

/** The whole state of the playground's Slack, and the way from it to the bot. */
export type Workspace = {
  readonly outside: Outside;
  readonly messages: Messages;
  readonly views: Views;
  readonly tickets: Tickets;
  readonly delivery: Delivery;
  readonly uploads: Map<string, Upload>;
  /** The address of this server without a slash at the end, such as `http://127.0.0.1:4000`. */
  origin(): string;
  watch(listener: (change: Change) => void): () => void;
};

/** Makes an empty workspace. */
export function createWorkspace(options: DeliveryOptions, origin: () => string): Workspace {
  const outside: Outside = { clock: options.clock, ids: options.ids, log: options.log };
  const listeners = new Set<(change: Change) => void>();
  function tell(change: Change): void {
    for (const listener of listeners) listener(change);
  }
  return {
    outside,
    messages: createMessages(outside, tell),
    views: createViews(outside, (user) => tell({ kind: 'views', user })),
    tickets: createTickets(outside),
    delivery: createDelivery(options),
    uploads: new Map(),
    origin,
    watch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
