import { isObject, parseJson } from '../slack/json.ts';
import type { ScreenEvent } from '../slack/screen.ts';

/** What the server says to something that was done on the page. */
export type Outcome = {
  readonly ok: boolean;
  readonly problem?: string;
  readonly errors?: Readonly<Record<string, string>>;
};

const kinds = ['screen', 'message', 'removed', 'modal', 'home', 'cluster', 'scenario'] as const;

/** Listens to that person's screen until the returned function is called. The browser reconnects by itself. */
export function listen(
  user: string,
  heard: (event: ScreenEvent) => void,
  connected: (isConnected: boolean) => void,
): () => void {
  const source = new EventSource(`/client/events?user=${encodeURIComponent(user)}`);
  source.onopen = () => connected(true);
  source.onerror = () => connected(false);
  for (const kind of kinds) {
    source.addEventListener(kind, (event: MessageEvent<string>) => {
      const parsed = { kind, data: parseJson(event.data) };
      if (isScreenEvent(parsed)) heard(parsed);
    });
  }
  return () => source.close();
}

/** Does one thing as a person. Never rejects: a lost connection is a problem to show. */
export async function act(name: string, body: object): Promise<Outcome> {
  try {
    const response = await fetch(`/client/${name}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(60_000),
    });
    const outcome: unknown = await response.json();
    if (isOutcome(outcome) && (outcome.ok || outcome.problem !== undefined)) return outcome;
    return { ok: false, problem: 'That did not work.' };
  } catch {
    return { ok: false, problem: 'The playground does not answer. Is it still running?' };
  }
}

/** The page and the server are built from the same files, so the event's name says what its data is. */
function isScreenEvent(value: { readonly kind: string; readonly data: unknown }): value is ScreenEvent {
  return value.data !== undefined;
}

function isOutcome(value: unknown): value is Outcome {
  return isObject(value) && typeof value['ok'] === 'boolean';
}
