/**
 * Sentences for people, in every language that the bot speaks. A `Text` is plain data: it is stored with the report or
 * the plan it belongs to and read in the language of whoever looks at it later. Names, commands and what Kubernetes
 * itself said are strings, and stand in a sentence as they are.
 */

export const languages = ['en', 'zh'] as const;
export type Language = (typeof languages)[number];

export type Text = Readonly<Record<Language, string>>;

/** What may stand within a sentence: a text, or a name or a value, which is the same in every language. */
export type Word = string | Text;

export function isText(value: unknown): value is Text {
  if (typeof value !== 'object' || value === null) return false;
  const keys = Object.keys(value);
  return (
    keys.length === languages.length && languages.every((language) => language in value && isWord(value, language))
  );
}

function isWord(value: object, key: string): boolean {
  return typeof Object.getOwnPropertyDescriptor(value, key)?.value === 'string';
}

export function textIn(text: Text, language: Language): string {
  return text[language];
}

/** What somebody else said, a driver or Kubernetes or a person: it is quoted and never translated. */
export function verbatim(words: string): Text {
  return { en: words, zh: words };
}

/** What a template takes: names as they are, texts in its own language, numbers as its language writes them; nothing for nothing. */
type Value = Word | number | null | undefined;

/** The English side of a text, in which other texts may stand: `{ en: en`down for ${down}`, zh: zh`已停机 ${down}` }`. */
export function en(parts: TemplateStringsArray, ...values: readonly Value[]): string {
  return write('en', parts, values);
}

/**
 * The Chinese side of a text. Where a value stands beside the words, one space parts Chinese from Latin letters and
 * digits, and nothing parts Chinese from Chinese, whatever the value begins and ends with.
 */
export function zh(parts: TemplateStringsArray, ...values: readonly Value[]): string {
  return write('zh', parts, values);
}

function write(language: Language, parts: TemplateStringsArray, values: readonly Value[]): string {
  const pieces = parts.flatMap((part, no) => (no === 0 ? [part] : [worded(values[no - 1], language), part]));
  if (language === 'en') return pieces.join('');
  let text = '';
  for (const piece of pieces) text = besideChinese(text, piece);
  return text;
}

function besideChinese(before: string, after: string): string {
  const left = before.replace(/ +$/, '');
  const right = after.replace(/^ +/, '');
  const [isHanLeft, isHanRight] = [/\p{Script=Han}$/u.test(left), /^\p{Script=Han}/u.test(right)];
  const isMarked = /[，。；：、？！（）]$/.test(left) || /^[，。；：、？！（）]/.test(right);
  if (isMarked || (isHanLeft && isHanRight)) return `${left}${right}`;
  const isMixed = (isHanLeft && /^[A-Za-z0-9]/.test(right)) || (isHanRight && /[A-Za-z0-9]$/.test(left));
  return isMixed ? `${left} ${right}` : `${before}${after}`;
}

function worded(value: Value, language: Language): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'number' ? numbers[language].format(value) : wordIn(value, language);
}

function wordIn(word: Word, language: Language): string {
  return typeof word === 'string' ? word : word[language];
}

const numbers = { en: new Intl.NumberFormat('en'), zh: new Intl.NumberFormat('zh-CN') } as const;
const plurals = new Intl.PluralRules('en');

/** The English form that goes with a number: `${plural(n, 'waits', 'wait')}`. Chinese has one form for all. */
export function plural(n: number, one: string, other: string): string {
  return plurals.select(n) === 'one' ? one : other;
}

/** `1 volume`, `1,204 volumes`; `1 个卷`, `1,204 个卷`. The Chinese noun comes with its measure word. */
export function count(
  n: number,
  nouns: { readonly en: readonly [one: string, other: string]; readonly zh: string },
): Text {
  return { en: en`${n} ${plural(n, ...nouns.en)}`, zh: zh`${n} ${nouns.zh}` };
}

/** The things that sentences count and name most, for `count(n, nouns.claim)` and `named(names, 'claim')`. */
export const nouns = {
  attachment: { en: ['attachment', 'attachments'], zh: '个挂接' },
  claim: { en: ['claim', 'claims'], zh: '个申领' },
  clone: { en: ['clone', 'clones'], zh: '个克隆' },
  finalizer: { en: ['finalizer', 'finalizers'], zh: '个 Finalizer' },
  namespace: { en: ['namespace', 'namespaces'], zh: '个名字空间' },
  node: { en: ['node', 'nodes'], zh: '个节点' },
  object: { en: ['object', 'objects'], zh: '个对象' },
  pod: { en: ['pod', 'pods'], zh: '个 Pod' },
  snapshot: { en: ['snapshot', 'snapshots'], zh: '个快照' },
  volume: { en: ['volume', 'volumes'], zh: '个卷' },
  workload: { en: ['workload', 'workloads'], zh: '个工作负载' },
} as const;
export type Noun = keyof typeof nouns;

/** `pod a`, `pods a and b`, `pods a, b, c and 4 more`; `Pod a`, `Pod a 和 b` … `Claim` begins a sentence. */
export function named(names: readonly Word[], noun: Noun | Capitalize<Noun>): Text {
  const found = Object.entries(nouns).find(([key]) => key === noun.toLowerCase())?.[1] ?? nouns.object;
  const [one, other] = found.en;
  const [first, ...rest] = plural(names.length, one, other);
  const isCapital = noun !== noun.toLowerCase();
  const word = `${isCapital ? first?.toUpperCase() : first}${rest.join('')}`;
  const list = listed(names);
  return { en: en`${word} ${list}`, zh: zh`${found.zh.slice(1).trim()} ${list}` };
}

/** `a`, `a and b`, `a, b and 3 more`; `a`, `a 和 b`, `a、b 及另外 3 个`. */
export function listed(names: readonly Word[], most = 3): Text {
  return { en: listedIn('en', names, most), zh: listedIn('zh', names, most) };
}

/** Names in a row, without an `and`: `a, b`, `a, b and 3 more`. */
export function enumerated(names: readonly Word[], most: number): Text {
  const left = names.length - most;
  const row = (language: Language) =>
    names
      .slice(0, most)
      .map((name) => wordIn(name, language))
      .join(language === 'en' ? ', ' : '、');
  return left > 0
    ? { en: en`${row('en')} and ${left} more`, zh: zh`${row('zh')} 及另外 ${left} 个` }
    : { en: row('en'), zh: row('zh') };
}

function listedIn(language: Language, names: readonly Word[], most: number): string {
  const shown = names.slice(0, most).map((name) => wordIn(name, language));
  const comma = language === 'en' ? ', ' : '、';
  if (names.length > most) {
    return language === 'en'
      ? en`${shown.join(comma)} and ${names.length - most} more`
      : zh`${shown.join(comma)} 及另外 ${names.length - most} 个`;
  }
  const last = shown.at(-1) ?? '';
  if (shown.length < 2) return last;
  const others = shown.slice(0, -1).join(comma);
  return language === 'en' ? en`${others} and ${last}` : zh`${others} 和 ${last}`;
}

/** Whole sentences one after the other; what is undefined is left out. */
export function sentences(...parts: readonly (Text | undefined)[]): Text {
  return joined(parts, { en: ' ', zh: '' });
}

/** Reasons in one sentence: `a; b`. */
export function clauses(parts: readonly (Text | undefined)[]): Text {
  return joined(parts, { en: '; ', zh: '；' });
}

function joined(parts: readonly (Text | undefined)[], by: Text): Text {
  const given = parts.filter((part) => part !== undefined);
  const join = (language: Language) => given.map((part) => textIn(part, language)).join(by[language]);
  return { en: join('en'), zh: join('zh') };
}

/** `45 s`, `12 min`, `10 h`, `3 d`: one unit, rounded down, for sentences. */
export function duration(ms: number): Text {
  const whole = Math.max(0, Math.floor(ms / 1000));
  if (whole < 120) return { en: en`${whole} s`, zh: zh`${whole} 秒` };
  if (whole < 7200) return unit(whole / 60, 'min', '分钟');
  if (whole < 172_800) return unit(whole / 3600, 'h', '小时');
  return unit(whole / 86_400, 'd', '天');
}

function unit(amount: number, english: string, chinese: string): Text {
  const whole = Math.floor(amount);
  return { en: en`${whole} ${english}`, zh: zh`${whole} ${chinese}` };
}
