/**
 * The three ways in which work can fail on purpose. Everything else that is thrown is a bug.
 *
 * - `Refused`: a rule, a right or the state of the world forbids it. Retrying changes nothing; the message is for people.
 * - `Transient`: nothing was changed and the same call may succeed later.
 * - `Uncertain`: a change was asked for and it is not known whether it took place. Read and decide; never send it again blindly.
 */
export class Refused extends Error {
  override readonly name = 'Refused';
}

export class Transient extends Error {
  override readonly name = 'Transient';
  /** How long the other side asked us to wait, in milliseconds, when it said so. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly retryAfterMs?: number }) {
    super(message, options);
    this.retryAfterMs = options?.retryAfterMs;
  }
}

export class Uncertain extends Error {
  override readonly name = 'Uncertain';
}

/** Ends a `switch` over a union: a new member that is not handled does not compile. */
export function absurd(value: never): never {
  throw new Error(`unhandled value: ${JSON.stringify(value)}`);
}
