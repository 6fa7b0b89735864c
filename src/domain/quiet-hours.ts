/** A span of every day in one time zone, in which only what is critical begins a thread. */
export interface QuietHours {
  /** Minutes after midnight. */
  readonly from: number;
  readonly to: number;
  /** IANA name. */
  readonly zone: string;
}

const DAY_MINUTES = 1440;
const MINUTE_MS = 60_000;

/** `22:00-07:00` or `22:00-07:00 Europe/Berlin`; undefined for anything else, and for a zone that there is not. */
export function parseQuietHours(text: string): QuietHours | undefined {
  const found = /^([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)(?: ([A-Za-z0-9_+/-]+))?$/.exec(text.trim());
  if (!found) return undefined;
  const [, fromHour, fromMinute, toHour, toMinute, zone = 'UTC'] = found;
  const from = Number(fromHour) * 60 + Number(fromMinute);
  const to = Number(toHour) * 60 + Number(toMinute);
  return from === to || !isZone(zone) ? undefined : { from, to, zone };
}

/** When the quiet hours end in which this moment lies, in milliseconds since 1970; undefined outside of them. */
export function quietUntil(nowMs: number, { from, to, zone }: QuietHours): number | undefined {
  const minute = minuteOfDay(nowMs, zone);
  const isQuiet = from < to ? minute >= from && minute < to : minute >= from || minute < to;
  if (!isQuiet) return undefined;
  const left = (to - minute + DAY_MINUTES) % DAY_MINUTES;
  return (Math.floor(nowMs / MINUTE_MS) + left) * MINUTE_MS;
}

function minuteOfDay(nowMs: number, zone: string): number {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).formatToParts(nowMs);
  const of = (type: 'hour' | 'minute') => Number(parts.find((part) => part.type === type)?.value ?? 0);
  return of('hour') * 60 + of('minute');
}

function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
