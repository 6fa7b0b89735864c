const formats = new Map<string, Intl.DateTimeFormat>();

/** Whether the rules of that zone are known here: an IANA name such as `Europe/Berlin`, or `UTC`. */
export function isTimeZone(name: string): boolean {
  try {
    formatOf(name);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** `2026-10-25 02:30:00 +01:00`. Throws a `RangeError` for a zone that is not known. */
export function localTime(ms: number, zone: string): string {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const part = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? '';
  const offset = /[+-]\d{2}:\d{2}/.exec(part('timeZoneName'))?.[0] ?? '+00:00';
  return `${part('year')}-${part('month')}-${part('day')} ${part('hour')}:${part('minute')}:${part('second')} ${offset}`;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone);
  if (known) return known;
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZoneName: 'longOffset',
  });
  formats.set(zone, format);
  return format;
}
