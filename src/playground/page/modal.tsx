import { type FormEvent, type ReactElement, useState } from 'react';
import { objectAt, objectsAt, stringAt } from '../slack/json.ts';
import type { ScreenView } from '../slack/screen.ts';
import { Blocks } from './blocks.tsx';
import { act } from './connection.ts';
import { Dialog } from './dialog.tsx';
import { useLive } from './live.ts';

/** The topmost modal of the person. Errors of a submission stand under their inputs. */
export function Modal({ user, shown }: { readonly user: string; readonly shown: ScreenView }): ReactElement {
  const { id, view } = shown;
  const [problem, setProblem] = useState('');
  const [isSending, setSending] = useState(false);
  const live = useLive(user, { viewId: id }, setProblem);
  const submitText = stringAt(objectAt(view, 'submit'), 'text');

  async function send(): Promise<void> {
    setSending(true);
    setProblem('');
    const outcome = await act('submit', { user, viewId: id, values: live.values });
    setSending(false);
    if (outcome.ok) return;
    live.setErrors(outcome.errors ?? {});
    setProblem(outcome.problem ?? '');
  }

  function submit(event: FormEvent): void {
    event.preventDefault();
    void send();
  }

  function close(all: boolean): void {
    void act('close', { user, viewId: id, all });
  }

  return (
    <Dialog title={stringAt(objectAt(view, 'title'), 'text')} close={() => close(true)}>
      <form onSubmit={submit} noValidate>
        <div className="dialog-body">
          <Blocks blocks={objectsAt(view, 'blocks')} live={live} />
        </div>
        {problem !== '' && (
          <p className="error" role="alert">
            {problem}
          </p>
        )}
        <footer>
          <button type="button" className="button" onClick={() => close(false)}>
            {stringAt(objectAt(view, 'close'), 'text') || (view['previous_view_id'] === null ? 'Cancel' : 'Back')}
          </button>
          {submitText !== '' && (
            <button type="submit" className="button primary solid" disabled={isSending} aria-busy={isSending}>
              {submitText}
            </button>
          )}
        </footer>
      </form>
    </Dialog>
  );
}
