import type { ClusterRow } from '../slack/cluster-rows.ts';

/** One offer under the composer: what stands there after it was taken, and a word on what it does. */
export type Suggestion = { readonly text: string; readonly hint: string; readonly label: string };

/** `eager` completions are taken by Enter; the others only after an arrow key or Tab. */
export type Completion = { readonly suggestions: readonly Suggestion[]; readonly isEager: boolean };

const words: readonly { readonly word: string; readonly usage: string; readonly hint: string }[] = [
  { word: 'diagnose', usage: '[KIND/NAME] [-n NAMESPACE]', hint: 'Find out what is wrong with storage, and why' },
  { word: 'help', usage: '', hint: 'What this app can do' },
  { word: 'status', usage: '', hint: 'Is the bot well, and what runs now' },
  { word: 'incidents', usage: '', hint: 'Open incidents and their threads' },
  { word: 'audit', usage: 'KIND/NAME | INCIDENT', hint: 'Who decided and changed what, and when' },
  { word: 'pause', usage: '', hint: 'Stop every repair before its next step' },
  { word: 'resume', usage: '', hint: 'Allow repairs again' },
];

const shortKinds: Readonly<Record<string, string>> = {
  PersistentVolumeClaim: 'pvc',
  Pod: 'pod',
  Node: 'node',
  PersistentVolume: 'pv',
  VolumeAttachment: 'volumeattachment',
};

const most = 8;
const none: Completion = { suggestions: [], isEager: false };

/** What fits what was typed so far. Slash commands exist outside threads alone. */
export function complete(
  typed: string,
  inThread: boolean,
  command: string,
  names: readonly { readonly name: string; readonly title: string }[],
  rows: readonly ClusterRow[],
): Completion {
  const mention = /(?:^|\s)@([\w-]*)$/.exec(typed);
  if (mention !== null) return completeName(typed, mention[1] ?? '', names);
  if (inThread || !typed.startsWith('/')) return none;
  const target = /^(\S+ (?:diagnose|audit)) (\S*)$/.exec(typed);
  if (target !== null && typed.startsWith(`${command} `)) return completeTarget(target[1] ?? '', target[2] ?? '', rows);
  if (typed.split(' ').length > 2) return none;
  return completeWord(typed, command);
}

function completeWord(typed: string, command: string): Completion {
  const suggestions = words
    .map(({ word, usage, hint }) => ({
      text: `${command} ${word}`,
      label: `${command} ${word}${usage === '' ? '' : ` ${usage}`}`,
      hint,
    }))
    .filter(({ text }) => text.startsWith(typed.toLowerCase()));
  const isWhole = typed === command || suggestions.some(({ text }) => text === typed);
  return { suggestions, isEager: !isWhole };
}

function completeTarget(before: string, typed: string, rows: readonly ClusterRow[]): Completion {
  const suggestions = rows
    .filter((row) => shortKinds[row.kind] !== undefined)
    .map((row) => ({ row, target: `${shortKinds[row.kind] ?? ''}/${row.name}` }))
    .filter(({ target }) => target.includes(typed.toLowerCase()))
    .sort((a, b) => rank(a.row) - rank(b.row))
    .slice(0, most)
    .map(({ row, target }) => {
      const text = `${before} ${target}${row.namespace === '' ? '' : ` -n ${row.namespace}`}`;
      return { text, label: text.slice(before.length + 1), hint: row.chips.map((chip) => chip.text).join(', ') };
    });
  return { suggestions, isEager: false };
}

/** What is in trouble first, claims and pods before the rest. */
function rank(row: ClusterRow): number {
  const kind = Object.keys(shortKinds).indexOf(row.kind);
  return (row.chips.some((chip) => chip.tone === 'bad') ? 0 : 10) + kind;
}

function completeName(
  typed: string,
  start: string,
  names: readonly { readonly name: string; readonly title: string }[],
): Completion {
  const before = typed.slice(0, typed.length - start.length - 1);
  const suggestions = names
    .filter(({ name }) => name.startsWith(start.toLowerCase()))
    .map(({ name, title }) => ({ text: `${before}@${name} `, label: `@${name}`, hint: title }));
  return { suggestions, isEager: !names.some(({ name }) => name === start.toLowerCase()) };
}
