/** Which requests an injected error hits; absent fields match everything. */
export interface FaultMatch {
  readonly verb?: string;
  readonly resource?: string;
  readonly name?: string;
}

/**
 * An API error to inject.
 * - `status`: answer with that code instead of acting.
 * - `hang`: never answer, do nothing.
 * - `reset`: cut the connection, do nothing.
 * - `reply-lost`: act, then cut the connection.
 * - `html-200`: answer a proxy's page with code 200, do nothing.
 * - `truncated`: act, then send half of the answer and cut the connection.
 * - `delay`: only wait `delayMs`.
 */
export interface Fault {
  readonly match: FaultMatch;
  /** How many requests it hits. */
  readonly times: number;
  readonly kind: 'status' | 'hang' | 'reset' | 'reply-lost' | 'html-200' | 'truncated' | 'delay';
  readonly code?: number;
  readonly retryAfterSeconds?: number;
  /** Real milliseconds to wait before anything happens. */
  readonly delayMs?: number;
}

/** The injected errors that are still to come. */
export class FaultList {
  #faults: { fault: Fault; left: number }[] = [];

  /** Adds a fault; the returned function takes it out again. */
  add(fault: Fault): () => void {
    const entry = { fault, left: fault.times };
    this.#faults.push(entry);
    return () => {
      this.#faults = this.#faults.filter((candidate) => candidate !== entry);
    };
  }

  /** Takes the first fault that matches a request, and counts it. */
  take(verb: string, resource: string, name: string): Fault | undefined {
    for (const entry of this.#faults) {
      const { match } = entry.fault;
      const hit =
        entry.left > 0 &&
        (match.verb === undefined || match.verb === verb) &&
        (match.resource === undefined || match.resource === resource) &&
        (match.name === undefined || match.name === name);
      if (!hit) continue;
      entry.left -= 1;
      return entry.fault;
    }
    return undefined;
  }

  /** Drops all. */
  clear(): void {
    this.#faults = [];
  }
}
