import fc from 'fast-check';
import type { Nodes } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmFromMarkdown } from 'mdast-util-gfm';
import { gfm } from 'micromark-extension-gfm';
import { describe, expect, it } from 'vitest';
import { code, prose } from '../../src/domain/markdown.ts';
import type { IncidentFacts } from '../../src/domain/postmortem.ts';
import { localTime } from '../../src/domain/time-zone.ts';
import { faults } from '../../src/faults/index.ts';
import { type PostmortemOptions, peopleOf, postmortem, span } from '../../src/postmortem.ts';
import { hostileTexts } from '../slack/support/hostile.ts';
import { faultsOfProse } from '../support/chinese.ts';
import { cause, facts, incident, plan, reportOf } from './sample.ts';

const options: PostmortemOptions = {
  language: 'en',
  timeZone: 'Europe/Berlin',
  prevention: (id) => faults.find((fault) => fault.id === id)?.prevention,
  names: new Map([
    ['U0SAM000001', 'Sam'],
    ['U0LIN000001', 'Lin'],
  ]),
};

const write = (given: IncidentFacts, over: Partial<PostmortemOptions> = {}) =>
  postmortem(given, { ...options, ...over });

describe('a post-mortem', () => {
  it('tells the whole incident in English', async () => {
    await expect(write(facts)).toMatchFileSnapshot('article.en.md');
  });

  it('tells the same in Chinese', async () => {
    const text = write(facts, { language: 'zh', timeZone: 'Asia/Shanghai' });
    await expect(text).toMatchFileSnapshot('article.zh.md');
    expect(text.split('\n').flatMap((line) => faultsOfProse(line.replaceAll(/Done, and verified.*/g, '')))).toEqual([]);
  });

  it('has the same parts in both languages, as a reader of Markdown sees them', () => {
    const partsIn = (language: 'en' | 'zh') =>
      kindsOf(parse(write(facts, { language }))).filter((kind) => kind !== 'text');
    expect(partsIn('zh').filter((kind) => kind !== 'inlineCode')).toEqual(
      partsIn('en').filter((kind) => kind !== 'inlineCode'),
    );
    expect(partsIn('zh').filter((kind) => kind === 'strong').length).toBeGreaterThan(8);
  });

  it('is the same text for the same facts, whoever reads it', () => {
    expect(write(facts)).toBe(write(structuredClone(facts)));
  });

  it('keeps one zone, and tells the two hours of the end of summer time apart', () => {
    const text = write(facts);
    expect(text).toContain('`2026-10-25 02:15:02 +02:00` The incident was opened');
    expect(text).toContain('`2026-10-25 02:05:30 +01:00`');
    const times = [...text.matchAll(/^- `(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d)`/gm)].map(([, time]) =>
      Date.parse((time ?? '').replace(' ', 'T').replace(' ', '')),
    );
    expect(times.length).toBeGreaterThan(8);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('counts durations across the end of summer time as they were', () => {
    expect(write(facts)).toContain('57 min 38 s after the incident was opened');
    for (const timeZone of ['UTC', 'Europe/Berlin', 'Asia/Shanghai', 'America/St_Johns'])
      expect(write(facts, { timeZone })).toContain('between 49 min 51 s and 57 min 32 s');
  });

  it('takes a zone that there is not for UTC, and says so', () => {
    expect(write(facts, { timeZone: 'Mars/Olympus' })).toContain('in `UTC`');
  });

  it('works for an incident that is not over, and claims no recovery', () => {
    const text = write({ ...facts, incident: { ...incident, state: 'diagnosed', resolvedAt: null }, moves: [] });
    expect(text).toContain('it was not over when this was written');
    expect(text).not.toContain('to recovery');
  });

  it('says what it does not know: the beginning, and evidence that was never kept', () => {
    const told = {
      kind: 'diagnosis_recorded',
      at: '2026-10-25T00:15:08Z',
      actor: 'system',
      plan: null,
      data: { findings: [{ fault: 'multi-attach-node-down' }] },
    };
    const text = write({ ...facts, diagnoses: [], incident: { ...incident, report: null }, moves: [told] });
    expect(text).toContain('When the trouble itself began is not recorded.');
    expect(text).toContain('older than the record');
    expect(text).toContain('Diagnosis: `multi-attach-node-down`');
    expect(text).toMatch(/What would have prevented it\n\n- `multi-attach-node-down`: Alert on/);
  });

  it('names every approver with the very words of their proof, and every write with its result', () => {
    const text = write(facts);
    expect(text).toContain('Approved by Sam (`U0SAM000001`)');
    expect(text).toContain('`node-off-proof`: `I pulled its power cable myself.`');
    expect(text).toContain('Write 1: `patch nodes n1` (uid `uid-n1`), done');
    expect(peopleOf(facts)).toEqual(['U0SAM000001', 'U0LIN000001', 'U0GUS000001']);
  });

  it('says that nobody changed anything when nothing was begun', () => {
    const idle = { ...facts, plans: [{ ...plan, state: 'EXPIRED' as const, votes: [], steps: [] }], moves: [] };
    expect(write(idle)).toContain('Nothing was changed by the bot.');
    expect(write(idle)).toContain('1 more plan was offered, and nobody voted on it.');
  });

  it('stays readable for an incident of thousands of alerts and objects', () => {
    const many = Array.from({ length: 3000 }, (_, n) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'shop',
      name: `db-${n}`,
      uid: null,
    }));
    const alerts = Array.from({ length: 3000 }, (_, n) => ({
      source: 'alertmanager',
      name: `A${n}`,
      severity: 'warning',
      object: ['Pod', 'shop', `db-${n}`],
      startsAt: '2026-10-25T00:15:00Z',
      endsAt: null,
      isFiring: true,
      times: 1,
    }));
    const diagnoses = [
      {
        at: '2026-10-25T00:15:08Z',
        lastAt: '2026-10-25T00:15:08Z',
        report: reportOf([{ ...cause, affected: many }], '2026-10-25T00:15:08Z'),
      },
    ];
    const text = write({ ...facts, alerts, diagnoses });
    expect(text.length).toBeLessThan(120_000);
    expect(text).toMatch(/and 2,\d+ more, which are left out here/);
  });
});

describe('the clock of a zone', () => {
  it.each([
    ['2026-10-25T00:30:00Z', 'Europe/Berlin', '2026-10-25 02:30:00 +02:00'],
    ['2026-10-25T01:30:00Z', 'Europe/Berlin', '2026-10-25 02:30:00 +01:00'],
    ['2026-03-29T01:00:00Z', 'Europe/Berlin', '2026-03-29 03:00:00 +02:00'],
    ['2026-01-01T00:00:00Z', 'Asia/Kathmandu', '2026-01-01 05:45:00 +05:45'],
    ['2026-01-01T00:00:00Z', 'America/New_York', '2025-12-31 19:00:00 -05:00'],
    ['2026-01-01T00:00:00Z', 'UTC', '2026-01-01 00:00:00 +00:00'],
  ])('says %s in %s as %s', (utc, zone, says) => {
    expect(localTime(Date.parse(utc), zone)).toBe(says);
  });

  it.each([
    [0, '0 s'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_661_000, '1 h 1 min'],
    [90_061_000, '1 d 1 h'],
    [86_400_000, '1 d'],
  ])('says %i ms as %s', (ms, says) => {
    expect(span(ms).en).toBe(says);
  });
});

const parse = (text: string) => fromMarkdown(text, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] });

function kindsOf(node: Nodes, found: string[] = []): readonly string[] {
  found.push(node.type);
  if ('children' in node) for (const child of node.children) kindsOf(child, found);
  return found;
}

/** What the bot's own words are made of; everything else was brought in. */
const ours = new Set(['root', 'heading', 'paragraph', 'text', 'list', 'listItem', 'inlineCode', 'strong']);

function headingsOf(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.startsWith('#'));
}

/** Every text of the facts that somebody outside chooses, replaced. */
function poisoned(text: string): IncidentFacts {
  const poison = (value: unknown, key = ''): unknown => {
    if (typeof value === 'string')
      return /^(at|startsAt|endsAt|lastAt|now|openedAt|resolvedAt|createdAt|approveBy|executeBy|kind|state|decision|risk|dataLoss|severity|verdict|origin|causedBy|id|finding|fault)$/.test(
        key,
      )
        ? value
        : text;
    if (Array.isArray(value)) return value.map((item) => poison(item, key));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, name)]));
  };
  return poison(structuredClone(facts)) as IncidentFacts;
}

const enemies = [
  '[click](https://evil.example.com)',
  '![x](https://evil.example.com/x.png)',
  '<img src=x onerror=alert(1)>',
  '<!-- hidden',
  'https://evil.example.com/path',
  'www.evil.example.com',
  'evil@example.com',
  '@everyone and @octocat',
  'mailto:evil@example.com',
  '# heading',
  '- item',
  '1. item',
  '1) item',
  '> quote',
  '---',
  '===',
  '```\ncode\n```',
  '~~~',
  '| a | b |\n|---|---|',
  '~~gone~~ **bold** _soft_ __strong__',
  '[^1]: note',
  '[x]: https://evil.example.com',
  '&lt;script&gt; &#64;',
  '\\',
  '`',
  '``',
  '`@`',
  '\u202eright to left\u202c',
  'line\n# heading\n- item',
  '- [ ] task',
];

describe('what others chose', () => {
  const hostile = hostileTexts().filter(({ length }) => length < 100);
  it.each([...enemies, ...hostile])('%j brings nothing into the file but text', (enemy) => {
    for (const language of ['en', 'zh'] as const) {
      const text = write(poisoned(enemy), { language, names: new Map([['U0SAM000001', enemy]]) });
      expect(kindsOf(parse(text)).filter((kind) => !ours.has(kind))).toEqual([]);
      expect(headingsOf(text)).toHaveLength(headingsOf(write(facts, { language })).length);
    }
  });

  it('cannot be brought in by any text at all', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.string({ unit: fc.constantFrom(...'`*_[]()<>#-+=|~&@:/\\!. \n1aw') }),
    );
    fc.assert(
      fc.property(texts, (text) => {
        for (const line of [`- ${prose(text)}`, `- ${code(text)}: ${prose(text)}`, prose(text)])
          expect(kindsOf(parse(line)).filter((kind) => !ours.has(kind) || kind === 'heading')).toEqual([]);
        expect(prose(text)).not.toMatch(/\n/);
      }),
      { numRuns: 500 },
    );
  });

  it('is shown as it was, as far as it can be seen', () => {
    expect(prose('a*b_c [d](e) <f> & g')).toBe('a\\*b\\_c \\[d\\](e) \\<f\\> \\& g');
    expect(prose('mail to a@b.example, or https://x.example/y')).toBe(
      'mail to `a@b.example,` or `https://x.example/y`',
    );
    expect(prose('# 1. x')).toBe('\\# 1. x');
    expect(prose('2. x')).toBe('2\\. x');
    expect(code('a`b\nc')).toBe("`a'b c`");
  });
});

describe('facts with holes', () => {
  it('never stop it, in whatever order they come', () => {
    const time = fc.constantFrom(
      '2026-10-25T00:15:00.000Z',
      '2026-10-25T01:15:00.000Z',
      '2026-03-29T01:00:00Z',
      'not a time',
      '',
    );
    const maybe = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: null });
    const any = fc.record({
      state: fc.constantFrom('open' as const, 'diagnosed' as const, 'resolved' as const, 'acting' as const),
      openedAt: time,
      resolvedAt: maybe(time),
      report: fc.constantFrom(null, reportOf([cause], 'never'), reportOf([], '2026-10-25T00:15:00Z')),
      severity: fc.constantFrom(null, 'critical' as const),
      origin: fc.constantFrom('person' as const, 'alert' as const, 'scan' as const),
      alerts: fc.shuffledSubarray([...facts.alerts]),
      diagnoses: fc.shuffledSubarray([...facts.diagnoses]),
      plans: fc.shuffledSubarray([...facts.plans]),
      moves: fc.shuffledSubarray([...facts.moves]),
      strange: fc.array(
        fc.record({
          kind: fc.constantFrom('plan_state', 'diagnosis_recorded', 'vote_refused', 'incident_joined', 'else'),
          at: time,
          actor: fc.string(),
          plan: maybe(fc.string()),
          data: fc.dictionary(fc.constantFrom('from', 'to', 'says', 'findings', 'alert'), fc.anything()),
        }),
        { maxLength: 5 },
      ),
      lastAt: time,
    });
    fc.assert(
      fc.property(any, fc.constantFrom('en' as const, 'zh' as const), (given, language) => {
        const { alerts, diagnoses, plans, moves, strange, lastAt, ...over } = given;
        const text = write(
          {
            incident: { ...incident, ...over },
            alerts: alerts.map((alert) => ({ ...alert, startsAt: lastAt })),
            diagnoses: diagnoses.map((one) => ({ ...one, lastAt })),
            plans,
            joined: [],
            moves: [...moves, ...strange],
            isCut: strange.length > 2,
          },
          { language, names: new Map() },
        );
        expect(kindsOf(parse(text)).filter((kind) => !ours.has(kind))).toEqual([]);
        expect(text).not.toMatch(/undefined|NaN|\[object|Invalid/);
        expect(headingsOf(text).filter((line) => line.startsWith('## '))).toHaveLength(6);
      }),
      { numRuns: 100 },
    );
  });
});
