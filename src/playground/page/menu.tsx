import { type KeyboardEvent, type ReactElement, type ReactNode, useEffect, useRef, useState } from 'react';

/** A button that opens a short menu. Arrow keys move, Escape closes and gives the focus back. */
export function Menu({
  name,
  items,
  children,
}: {
  readonly name: string;
  readonly items: readonly { readonly name: string; readonly pick: () => void }[];
  readonly children: ReactNode;
}): ReactElement {
  const [isOpen, setOpen] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (!isOpen) return undefined;
    box.current?.querySelector<HTMLElement>('[role=menuitem]')?.focus();
    function closeOutside(event: PointerEvent): void {
      if (event.target instanceof Node && !box.current?.contains(event.target)) setOpen(false);
    }
    document.addEventListener('pointerdown', closeOutside);
    return () => document.removeEventListener('pointerdown', closeOutside);
  }, [isOpen]);

  function move(event: KeyboardEvent): void {
    if (event.key === 'Escape') {
      setOpen(false);
      button.current?.focus();
      event.stopPropagation();
      return;
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const all = [...(box.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])];
    const at = document.activeElement instanceof HTMLElement ? all.indexOf(document.activeElement) : -1;
    all.at((at + step + all.length) % all.length)?.focus();
  }

  return (
    <span className={isOpen ? 'menu open' : 'menu'} ref={box}>
      <button
        ref={button}
        type="button"
        className="icon-button"
        aria-label={name}
        title={name}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        onClick={() => setOpen(!isOpen)}
      >
        {children}
      </button>
      {isOpen && (
        <div role="menu" aria-label={name} tabIndex={-1} onKeyDown={move}>
          {items.map((item) => (
            <button
              key={item.name}
              type="button"
              role="menuitem"
              onClick={() => {
                setOpen(false);
                item.pick();
              }}
            >
              {item.name}
            </button>
          ))}
        </div>
      )}
    </span>
  );
}
