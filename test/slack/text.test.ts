import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { code, command, commands, date, esc, escReply, lengthOf, person, plain } from '../../src/slack/views/text.ts';
import { hostileTexts } from './support/hostile.ts';
import { isOurs, look, unseenOf } from './support/parse.ts';

const writers: readonly (readonly [string, (text: string) => string])[] = [
  ['esc', (text) => esc(text, 300)],
  ['code', (text) => code(text, 300)],
  ['command', (text) => command(text, 600, 'elsewhere')],
  ['commands', (text) => commands([text, text], 600, 'elsewhere')],
  ['plain', (text) => plain(text, 75)],
  ['escReply', (text) => escReply(text, 300)],
  ['person', (text) => person(text.toLowerCase())],
];

describe.each(writers)('%s', (_name, write) => {
  it('brings forth no mention, link or unseen character from a hostile text', () => {
    for (const text of hostileTexts()) {
      const written = write(text);
      expect(look({ text: written }).tokens, text).toEqual([]);
      expect(unseenOf(written)).toEqual([]);
    }
  });

  it('does so for any text at all', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (text) => {
        const written = write(text);
        expect(look({ text: written }).tokens).toEqual([]);
        expect(unseenOf(written)).toEqual([]);
      }),
    );
  });
});

describe('esc', () => {
  it('encodes the three control characters of mrkdwn and nothing else, ampersand first', () => {
    expect(esc('a & b <c> &lt; "d" *e*')).toBe('a &amp; b &lt;c&gt; &amp;lt; "d" *e*');
  });

  it('makes one line of many, so that no line can be forged', () => {
    expect(esc('a\n✅ Approved by @boss\r\n\tb\u2028c')).toBe('a ✅ Approved by @boss b c');
  });

  it('cuts with a note and stays within the limit, counted after escaping', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('&', '<', 'a', '𝒳', ' '), minLength: 1, maxLength: 300 }),
        fc.integer({ min: 60, max: 200 }),
        (text, most) => {
          const written = esc(text, most);
          expect(lengthOf(written)).toBeLessThanOrEqual(most);
          const isWhole =
            written.replaceAll('&lt;', '<').replaceAll('&amp;', '&') === text.replaceAll(/ +/g, ' ').trim();
          expect(isWhole || /… \(\d+\/\d+\)$/.test(written)).toBe(true);
        },
      ),
    );
  });

  it('never cuts an entity in two', () => {
    for (let most = 40; most < 60; most += 1)
      expect(esc('&<>'.repeat(50), most).replaceAll(/&(amp|lt|gt);/g, '')).toMatch(/^… \(/);
  });
});

describe('code', () => {
  it('keeps backticks of the data from ending the span', () => {
    expect(code('a`b` *c*')).toBe("`a'b' *c*`");
    expect(commands(['x', '```', 'y'], 100, '')).toBe("```\nx\n'''\ny\n```");
  });

  it('says how much of the data is not shown, and shows what is empty', () => {
    expect(code('a'.repeat(400), 30)).toBe(`\`${'a'.repeat(18)}… (28/400)\``);
    expect(code('')).toBe('–');
  });
});

describe('a command', () => {
  it('is whole or not there: half of one deletes something else', () => {
    const line = `kubectl delete pods ${Array.from({ length: 40 }, (_, no) => `db-${no}`).join(' ')}`;
    expect(command(line, 400, 'elsewhere')).toBe(`\`${line}\``);
    for (let most = 9; most < line.length + 2; most += 1) expect(command(line, most, 'elsewhere')).toBe('elsewhere');
    expect(commands([line, line], 400, 'elsewhere')).toBe('elsewhere');
  });
});

describe('date', () => {
  it("shows in the reader's zone, with UTC for what cannot", () => {
    expect(date('2026-11-30T12:00:00Z')).toBe('<!date^1796040000^{date_short_pretty} {time}|2026-11-30 12:00 UTC>');
    expect(isOurs(look({ text: date('2026-11-30T12:00:00Z') }).tokens[0] ?? '', [])).toBe(true);
  });

  it('shows what is no date as text', () => {
    expect(date('<!here>')).toBe('&lt;!here&gt;');
  });
});

describe('person', () => {
  it('mentions a user id and nothing that only looks like one', () => {
    expect(person('U0ADA')).toBe('<@U0ADA>');
    for (const id of ['', 'S0GROUP', '!channel', 'U1|x', 'U1><!here', 'u0ada'])
      expect(look({ text: person(id) }).tokens).toEqual([]);
  });
});
