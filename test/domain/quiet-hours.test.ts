import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseQuietHours, quietUntil } from '../../src/domain/quiet-hours.ts';

const at = (time: string) => Date.parse(`2026-11-30T${time}:00Z`);
const until = (hours: string, time: string) => {
  const quiet = parseQuietHours(hours);
  const end = quiet && quietUntil(at(time), quiet);
  return end === undefined ? undefined : new Date(end).toISOString().slice(0, 16);
};

describe('quiet hours', () => {
  it.each([
    ['22:00-07:00', '23:30', '2026-12-01T07:00'],
    ['22:00-07:00', '06:59', '2026-11-30T07:00'],
    ['22:00-07:00', '07:00', undefined],
    ['22:00-07:00', '21:59', undefined],
    ['12:00-13:30', '12:00', '2026-11-30T13:30'],
    ['22:00-07:00 Europe/Berlin', '21:30', '2026-12-01T06:00'],
    ['22:00-07:00 Asia/Shanghai', '13:30', undefined],
    ['22:00-07:00 Asia/Shanghai', '14:30', '2026-11-30T23:00'],
  ])('%s at %s UTC last until %s', (hours, time, expected) => {
    expect(until(hours, time)).toBe(expected);
  });

  it.each(['', '22-7', '24:00-07:00', '22:00-22:00', '22:00-07:00 Mars/Base', '22:00 - 07:00'])(
    'are not %j',
    (text) => {
      expect(parseQuietHours(text)).toBeUndefined();
    },
  );

  it('end in the future and within a day, at every moment that is quiet', () => {
    const minute = fc.integer({ min: 0, max: 1439 });
    fc.assert(
      fc.property(minute, minute, fc.integer({ min: 0, max: 4e12 }), (from, to, now) => {
        fc.pre(from !== to);
        const end = quietUntil(now, { from, to, zone: 'UTC' });
        if (end !== undefined) expect(end > now - 60_000 && end <= now + 86_400_000).toBe(true);
      }),
    );
  });
});
