import { type Text, verbatim } from './text.ts';

/**
 * The three ways in which work can fail on purpose. Everything else that is thrown is a bug.
 *
 * What is said is for people, in their language (`says`); `message` is the English of it, for the log and the audit trail.
 *
 * - `Refused`: a rule, a right or the state of the world forbids it. Retrying changes nothing; the message is for people.
 * - `Transient`: nothing was changed and the same call may succeed later.
 * - `Uncertain`: a change was asked for and it is not known whether it took place. Read and decide; never send it again blindly.
 */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly says: Text;

  constructor(says: Text, options?: ErrorOptions) {
    super(says.en, options);
    this.says = says;
  }
}

export class Transient extends Error {
  override readonly name = 'Transient';
  readonly says: Text;
  /** How long the other side asked us to wait, in milliseconds, when it said so. */
  readonly retryAfterMs: number | undefined;

  constructor(says: Text, options?: ErrorOptions & { readonly retryAfterMs?: number }) {
    super(says.en, options);
    this.says = says;
    this.retryAfterMs = options?.retryAfterMs;
  }
}

export class Uncertain extends Error {
  override readonly name = 'Uncertain';
  readonly says: Text;

  constructor(says: Text, options?: ErrorOptions) {
    super(says.en, options);
    this.says = says;
  }
}

/** What a person is told of something that was thrown; a bug is quoted. */
export function saysOf(error: unknown): Text {
  if (error instanceof Refused || error instanceof Transient || error instanceof Uncertain) return error.says;
  return verbatim(messageOf(error));
}

/** Whatever was thrown, in one line for the log; of several errors all. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

/** Ends a `switch` over a union: a new member that is not handled does not compile. */
export function absurd(value: never): never {
  throw new Error(`unhandled value: ${JSON.stringify(value)}`);
}
