import { createContext, useContext } from 'react';
import type { Channel, Person } from '../slack/people.ts';

/** Who looks at the page, and what names stand for: blocks, dates and menus depend on it. */
export type Reader = {
  readonly person: Person;
  readonly people: readonly Person[];
  readonly channels: readonly Channel[];
  /** Opens a permalink of this workspace in the page itself; `false` when it is not one. */
  follow(href: string): boolean;
};

const ReaderContext = createContext<Reader | undefined>(undefined);

/** Gives the reader to everything below. */
export const ReaderProvider = ReaderContext.Provider;

/** The reader; throws outside of the provider. */
export function useReader(): Reader {
  const reader = useContext(ReaderContext);
  if (reader === undefined) throw new Error('no reader above this component');
  return reader;
}
