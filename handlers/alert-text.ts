const MOST_TEXT = 20_000;

/** The first word of `[FIRING:1] KubePodNotReady (…)`, as Alertmanager titles it. */
export function nameOf(title: string): string {
  return /^\s*(?:\[[^\]]*\]\s*)?([A-Za-z_][A-Za-z0-9_]*)/.exec(title)?.[1] ?? 'PagerDuty';
}

/** The text of whatever was passed on, line breaks as they were before they became JSON. */
export function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.slice(0, MOST_TEXT).replaceAll('\\n', '\n').replaceAll('\\"', '"');
}

/**
 * A webhook of PagerDuty has no labels of its own; they stand in its texts as `label=value`, or as `- label = value` where
 * Alertmanager's own details were passed on.
 */
export function labelsOf(text: string): Readonly<Record<string, string>> {
  const found = text
    .slice(0, MOST_TEXT)
    .matchAll(/(?:^|[\s,{("-])([a-z][a-z0-9_]*)"?\s?[=:]\s?"?([A-Za-z0-9][-A-Za-z0-9._:/]*)/g);
  return Object.fromEntries([...found].slice(0, 100).map(([, label = '', value = '']) => [label, value]));
}
