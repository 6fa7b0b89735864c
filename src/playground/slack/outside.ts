/** Time, randomness and the log, handed in so that tests can hold them. */
export type Outside = {
  /** Milliseconds since 1970. */
  readonly clock: { now(): number };
  /** A fresh random id (a UUID, say) at each call; secrets of `response_url`s and triggers are made from it. */
  readonly ids: () => string;
  readonly log: Log;
};

/** The part of the bot's log port that is used here. */
export type Log = { warn(message: string, data?: Readonly<Record<string, unknown>>): void };
