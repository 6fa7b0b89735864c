import { useState } from 'react';
import type { Live } from './blocks.tsx';
import { act } from './connection.ts';

/** What blocks belong to: a message or a view. */
export type Place = { readonly channel: string; readonly ts: string } | { readonly viewId: string };

/** Keeps the values of blocks and sends their clicks as that person; `complain` shows what went wrong. */
export function useLive(
  user: string,
  place: Place,
  complain: (problem: string) => void,
): Live & { setErrors(errors: Readonly<Record<string, string>>): void } {
  const [values, setValues] = useState<Live['values']>({});
  const [errors, setErrors] = useState<Live['errors']>({});
  const [busy, setBusy] = useState<string | undefined>(undefined);

  async function send(blockId: string, actionId: string, choice: unknown): Promise<void> {
    setBusy(`${blockId}/${actionId}`);
    const own = choice === undefined ? values : withValue(values, blockId, actionId, choice);
    const outcome = await act('click', { user, ...place, blockId, actionId, choice, values: own });
    setBusy(undefined);
    if (!outcome.ok) complain(outcome.problem ?? '');
  }

  return {
    values,
    errors,
    busy,
    setErrors,
    set: (blockId, actionId, value) => {
      setValues((old) => withValue(old, blockId, actionId, value));
      setErrors(({ [blockId]: _gone, ...rest }) => rest);
    },
    act: (blockId, actionId, choice) => void send(blockId, actionId, choice),
  };
}

function withValue(values: Live['values'], blockId: string, actionId: string, value: unknown): Live['values'] {
  return { ...values, [blockId]: { ...values[blockId], [actionId]: value } };
}
