import { type KeyboardEvent, type ReactElement, useEffect, useId, useRef, useState } from 'react';
import type { Screen } from '../slack/screen.ts';
import { complete } from './completion.ts';
import { act } from './connection.ts';
import { Icon } from './icons.tsx';
import { useReader } from './reader.tsx';

/** The line to write in, with completion of slash commands, objects of the cluster, and names. */
export function Composer({
  name,
  screen,
  channel,
  threadTs,
  draft,
  setDraft,
  complain,
}: {
  readonly name: string;
  readonly screen: Screen;
  readonly channel: string;
  readonly threadTs?: string;
  readonly draft: string;
  readonly setDraft: (text: string) => void;
  readonly complain: (problem: string) => void;
}): ReactElement {
  const reader = useReader();
  const id = useId();
  const box = useRef<HTMLTextAreaElement>(null);
  const [picked, setPicked] = useState(-1);
  const [isClosed, setClosed] = useState(false);
  useEffect(() => {
    // As in Slack, what was opened can be written to at once; a phone's keyboard would cover what there is to read.
    if (matchMedia('(min-width: 761px)').matches) box.current?.focus();
  }, []);
  const names = screen.people
    .filter((person) => person.id !== reader.person.id)
    .map((person) => ({ name: person.name, title: person.title }))
    .sort((a, b) => Number(b.name === screen.app.name) - Number(a.name === screen.app.name));
  const completion = complete(draft, threadTs !== undefined, screen.app.command, names, screen.cluster);
  const suggestions = isClosed ? [] : completion.suggestions;
  const current = picked >= 0 ? picked : completion.isEager ? 0 : -1;
  const chosen = suggestions[current];

  function change(text: string): void {
    setDraft(text);
    setPicked(-1);
    setClosed(false);
  }

  function take(text: string): void {
    change(text);
    setClosed(text.includes(' -n ') || text.endsWith(' ') || !text.endsWith('diagnose'));
    box.current?.focus();
  }

  async function send(): Promise<void> {
    const text = draft.trim();
    if (text === '') return;
    change('');
    const outcome = await act('say', { user: reader.person.id, channel, text, threadTs });
    if (!outcome.ok) complain(outcome.problem ?? '');
  }

  function press(event: KeyboardEvent): void {
    if (event.nativeEvent.isComposing) return;
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (suggestions.length > 0 && step !== 0) {
      event.preventDefault();
      setPicked((current + step + suggestions.length) % suggestions.length);
      return;
    }
    if (suggestions.length > 0 && event.key === 'Escape') {
      event.preventDefault();
      setClosed(true);
      return;
    }
    if (suggestions.length > 0 && event.key === 'Tab' && !event.shiftKey) {
      const first = chosen ?? suggestions[0];
      if (first === undefined || first.text === draft) return;
      event.preventDefault();
      take(first.text);
      return;
    }
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    if (chosen !== undefined && chosen.text !== draft) take(chosen.text);
    else void send();
  }

  return (
    <div className="composer">
      {suggestions.length > 0 && (
        <div className="suggestions" role="listbox" id={`${id}-list`} aria-label="Suggestions">
          {suggestions.map((suggestion, index) => (
            // The keyboard is served by the text box, which keeps the focus.
            // biome-ignore lint/a11y/useFocusableInteractive: options are named by aria-activedescendant
            // biome-ignore lint/a11y/useKeyWithClickEvents: see above
            <div
              key={suggestion.text}
              role="option"
              id={`${id}-${index}`}
              aria-selected={index === current}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(suggestion.text)}
            >
              <code>{suggestion.label}</code>
              <span>{suggestion.hint}</span>
            </div>
          ))}
        </div>
      )}
      <div className="composer-box">
        <textarea
          ref={box}
          aria-label={name}
          placeholder={name}
          aria-autocomplete="list"
          aria-controls={suggestions.length > 0 ? `${id}-list` : undefined}
          aria-activedescendant={chosen === undefined ? undefined : `${id}-${current}`}
          rows={1}
          value={draft}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => change(event.target.value)}
          onKeyDown={press}
        />
        <button
          type="button"
          className="send"
          aria-label={threadTs === undefined ? 'Send' : 'Post in thread'}
          disabled={draft.trim() === ''}
          onClick={() => void send()}
        >
          <Icon name="send" />
        </button>
      </div>
    </div>
  );
}
