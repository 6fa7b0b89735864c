/** Seconds since 1970 of a message's `ts`. */
export function secondsOf(ts: string): number {
  return Number.parseFloat(ts);
}

/** Time of day in that zone, such as `14:03` or `2:03 PM`. */
export function clockTime(seconds: number, locale: string, timeZone: string): string {
  return new Intl.DateTimeFormat(locale, { hour: 'numeric', minute: '2-digit', timeZone }).format(seconds * 1000);
}

/** The calendar day in that zone, in words: Today, Yesterday, or such as `Monday, November 30`. */
export function dayName(seconds: number, locale: string, timeZone: string, nowMs: number): string {
  const key = dayKey(seconds, timeZone);
  if (key === dayKey(nowMs / 1000, timeZone)) return 'Today';
  if (key === dayKey(nowMs / 1000 - 86_400, timeZone)) return 'Yesterday';
  return format(seconds, locale, timeZone, { weekday: 'long', month: 'long', day: 'numeric' });
}

/** The calendar day in that zone as `YYYY-MM-DD`. */
export function dayKey(seconds: number, timeZone: string): string {
  return format(seconds, 'en-CA', timeZone, { year: 'numeric', month: '2-digit', day: '2-digit' });
}

/** Slack's `<!date^…>` format for one reader: every token replaced, everything else kept. */
export function slackDate(seconds: number, pattern: string, locale: string, timeZone: string, nowMs: number): string {
  return pattern.replace(/\{(\w+)\}/g, (token, name: string) => {
    if (name.startsWith('time')) {
      return format(seconds, locale, timeZone, {
        hour: 'numeric',
        minute: '2-digit',
        ...(name === 'time_secs' ? { second: '2-digit' } : {}),
      });
    }
    if (name === 'ago') return ago(nowMs / 1000 - seconds);
    if (name.endsWith('_pretty')) {
      const day = dayName(seconds, locale, timeZone, nowMs);
      if (day === 'Today' || day === 'Yesterday') return day.toLowerCase();
    }
    switch (name.replace('_pretty', '')) {
      case 'date_num':
        return dayKey(seconds, timeZone);
      case 'date':
        return format(seconds, locale, timeZone, { year: 'numeric', month: 'long', day: 'numeric' });
      case 'date_short':
        return format(seconds, locale, timeZone, { year: 'numeric', month: 'short', day: 'numeric' });
      case 'date_long':
        return format(seconds, locale, timeZone, { weekday: 'long', year: 'numeric', month: 'long', day: 'numeric' });
      default:
        return token;
    }
  });
}

function ago(seconds: number): string {
  if (seconds < 60) return 'just now';
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`;
}

function format(seconds: number, locale: string, timeZone: string, options: Intl.DateTimeFormatOptions): string {
  return new Intl.DateTimeFormat(locale, { ...options, timeZone }).format(seconds * 1000);
}
