import type { ReactElement } from 'react';
import type { Person } from '../slack/people.ts';

/** A person's picture: the first letter on their colour, a disk for the app. The name stands beside it. */
export function Avatar({ person, size }: { readonly person: Person | undefined; readonly size: number }): ReactElement {
  const style = { width: size, height: size, fontSize: size * 0.46, background: person?.color ?? '#4a154b' };
  return (
    <span className="avatar" style={style} aria-hidden="true">
      {person?.isBot ? <Disk size={size * 0.66} /> : (person?.realName.slice(0, 1) ?? 'S')}
    </span>
  );
}

function Disk({ size }: { readonly size: number }): ReactElement {
  return (
    <svg width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
      <path d="M3 6v12c0 2.200 4 4 9 4s9-1.800 9-4V6z" fill="#6fb1fc" />
      <path d="M3 12c0 2.200 4 4 9 4s9-1.800 9-4" fill="none" stroke="#1f3a5f" strokeWidth="1.600" />
      <ellipse cx="12" cy="6" rx="9" ry="4" fill="#d7e9ff" />
    </svg>
  );
}
