import type { ReactElement } from 'react';

const paths = {
  hash: 'M9 4 7 20M17 4l-2 16M4 9h17M3 15h17',
  thread: 'M4 5h16v11H10l-4 4v-4H4z',
  more: 'M5 12h.01M12 12h.01M19 12h.01',
  close: 'M6 6l12 12M18 6 6 18',
  menu: 'M4 7h16M4 12h16M4 17h16',
  send: 'M4 4l17 8-17 8 3-8zM7 12h14',
  eye: 'M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 100 6 3 3 0 000-6z',
  cluster: 'M4 7c0-2 4-3 8-3s8 1 8 3-4 3-8 3-8-1-8-3zM4 7v10c0 2 4 3 8 3s8-1 8-3V7M4 12c0 2 4 3 8 3s8-1 8-3',
  file: 'M6 3h8l4 4v14H6zM14 3v4h4',
  home: 'M4 11l8-7 8 7v9h-6v-6h-4v6H4z',
  chevron: 'M8 10l4 4 4-4',
} as const;

/** A line drawing beside a word or inside a named button; it says nothing to screen readers. */
export function Icon({ name, size = 18 }: { readonly name: keyof typeof paths; readonly size?: number }): ReactElement {
  return (
    <svg
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth={name === 'more' ? 3 : 1.8}
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={paths[name]} />
    </svg>
  );
}
