import { describe, expect, it } from 'vitest';
import { readSentence, writeSentence } from '../../src/db/text.ts';
import {
  clauses,
  count,
  duration,
  en,
  isText,
  listed,
  named,
  plural,
  sentences,
  textIn,
  verbatim,
  zh,
} from '../../src/domain/text.ts';
import { hours, minutes, seconds } from '../../src/domain/time.ts';

describe('a text', () => {
  it('holds other texts, each in its own language, and names as they are', () => {
    const down = duration(minutes(12));
    expect({ en: en`${'n3'} is down for ${down}`, zh: zh`${'n3'} 已停机 ${down}` }).toEqual({
      en: 'n3 is down for 12 min',
      zh: 'n3 已停机 12 分钟',
    });
  });

  it('writes numbers as its language does, and nothing for nothing', () => {
    expect(en`${1204} of ${undefined}${null}`).toBe('1,204 of ');
    expect(zh`${1204}`).toBe('1,204');
  });

  it.each([
    [['a', 'b', 'c', 'd'], 'a、b、c 及另外 1 个正在等待'],
    [['a', 'b'], 'a 和 b 正在等待'],
    [[{ en: '2 claims', zh: '2 个申领' }, 'b'], '2 个申领和 b 正在等待'],
    [[{ en: 'a (default)', zh: 'a（默认）' }], 'a（默认）正在等待'],
  ])('has a space between Chinese and Latin letters, and none beside Chinese: %j', (names, chinese) => {
    expect(zh`${listed(names)} 正在等待`).toBe(chinese);
    expect(zh`${listed(names)}正在等待`).toBe(chinese);
  });

  it('leaves code and quoted words as they are', () => {
    expect(zh`请运行 \`${'kubectl get pvc'}\`：“${'no such node '}”。`).toBe(
      '请运行 `kubectl get pvc`：“no such node ”。',
    );
  });

  it('of somebody else is the same in both', () => {
    expect([textIn(verbatim('not found'), 'en'), textIn(verbatim('not found'), 'zh')]).toEqual([
      'not found',
      'not found',
    ]);
  });

  it.each([
    [{ en: 'a', zh: '甲' }, true],
    [{ en: 'a' }, false],
    [{ en: 'a', zh: 1 }, false],
    [{ en: 'a', zh: '甲', de: 'a' }, false],
    ['a', false],
    [null, false],
  ])('%j is told from other data: %s', (value, is) => {
    expect(isText(value)).toBe(is);
  });
});

describe('numbers in sentences', () => {
  it.each([
    [seconds(-5), '0 s', '0 秒'],
    [seconds(119), '119 s', '119 秒'],
    [seconds(120), '2 min', '2 分钟'],
    [hours(2) - 1, '119 min', '119 分钟'],
    [hours(2), '2 h', '2 小时'],
    [hours(48), '2 d', '2 天'],
    [hours(24 * 1234), '1,234 d', '1,234 天'],
  ])('%i ms are told in one unit, rounded down', (ms, english, chinese) => {
    expect(duration(ms)).toEqual({ en: english, zh: chinese });
  });

  it.each([
    [0, '0 volumes', '0 个卷'],
    [1, '1 volume', '1 个卷'],
    [2, '2 volumes', '2 个卷'],
    [1204, '1,204 volumes', '1,204 个卷'],
  ])('%i things have their plural', (n, english, chinese) => {
    expect(count(n, { en: ['volume', 'volumes'], zh: '个卷' })).toEqual({ en: english, zh: chinese });
    expect(plural(n, 'waits', 'wait')).toBe(n === 1 ? 'waits' : 'wait');
  });

  it.each([
    [[], '', ''],
    [['a'], 'a', 'a'],
    [['a', 'b'], 'a and b', 'a 和 b'],
    [['a', 'b', 'c'], 'a, b and c', 'a、b 和 c'],
    [['a', 'b', 'c', 'd', 'e'], 'a, b, c and 2 more', 'a、b、c 及另外 2 个'],
  ])('%j are listed', (names, english, chinese) => {
    expect(listed(names)).toEqual({ en: english, zh: chinese });
  });
});

describe('named things', () => {
  it.each([
    [['a'], 'Claim', 'Claim a', '申领 a'],
    [['a', 'b'], 'pod', 'pods a and b', 'Pod a 和 b'],
    [['a', 'b', 'c', 'd'], 'Volume', 'Volumes a, b, c and 1 more', '卷 a、b、c 及另外 1 个'],
  ] as const)('%j of the kind %s', (names, noun, english, chinese) => {
    expect(named(names, noun)).toEqual({ en: english, zh: chinese });
  });
});

it('sentences and reasons follow each other as the language has it', () => {
  const parts = [{ en: 'One.', zh: '一。' }, undefined, { en: 'Two.', zh: '二。' }];
  expect(sentences(...parts)).toEqual({ en: 'One. Two.', zh: '一。二。' });
  expect(clauses([verbatim('a'), undefined, verbatim('b')])).toEqual({ en: 'a; b', zh: 'a；b' });
});

describe('a stored sentence', () => {
  it('comes back as it was', () => {
    const sentence = { en: 'a', zh: '甲' };
    expect(readSentence(writeSentence(sentence))).toEqual(sentence);
  });

  it.each(['plain', '{not json', '{"en":"a"}', ''])(
    'of before the second language, %j, is the same in both',
    (stored) => {
      expect(readSentence(stored)).toEqual({ en: stored, zh: stored });
    },
  );
});
