import { type ReactElement, type ReactNode, useEffect, useId, useRef } from 'react';
import { type JsonObject, objectAt, stringAt } from '../slack/json.ts';
import { Icon } from './icons.tsx';

/** A window over the page. The browser keeps the focus inside and hides the rest; Escape asks to close. */
export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: string;
  readonly close: () => void;
  readonly children: ReactNode;
}): ReactElement {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = box.current;
    if (dialog === null || dialog.open) return undefined;
    dialog.showModal();
    dialog.querySelector<HTMLElement>('.field, .choices input, .button.primary')?.focus();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={box}
      className="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" className="icon-button" aria-label="Close window" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** The question that an element's `confirm` object asks before the app hears of the click. */
export function ConfirmDialog({
  confirm,
  onConfirm,
  onDeny,
}: {
  readonly confirm: JsonObject;
  readonly onConfirm: () => void;
  readonly onDeny: () => void;
}): ReactElement {
  function say(key: string, otherwise: string): string {
    return stringAt(objectAt(confirm, key), 'text') || otherwise;
  }
  return (
    <Dialog title={say('title', 'Are you sure?')} close={onDeny}>
      <div className="dialog-body">
        <p>{say('text', '')}</p>
      </div>
      <footer>
        <button type="button" className="button" onClick={onDeny}>
          {say('deny', 'Cancel')}
        </button>
        <button
          type="button"
          className={`button ${confirm['style'] === 'danger' ? 'danger solid' : 'primary solid'}`}
          onClick={onConfirm}
        >
          {say('confirm', 'Yes')}
        </button>
      </footer>
    </Dialog>
  );
}
