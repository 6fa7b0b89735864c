import type { JobRef } from '../ports.ts';

const idPattern = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/**
 * `<kind>-<id>-<n>`. BullMQ takes a `:` for a part of its own keys, a whole number for one of its own ids and an empty
 * text for none at all, so nothing else may become a job's id. Throws on an id that is not one of ours.
 */
export function jobId({ kind, id, n }: JobRef): string {
  if (!idPattern.test(id) || !Number.isSafeInteger(n) || n < 0)
    throw new TypeError(`no job id: ${JSON.stringify({ kind, id, n })}`);
  return `${kind}-${id}-${n}`;
}
