import { isText, type Text } from '../../src/domain/text.ts';

/**
 * Words that the Chinese Kubernetes documentation does not use for these things, with what it uses instead. The table
 * for people is `docs/glossary-zh.md`.
 */
export const wrongWords: readonly (readonly [wrong: RegExp, right: string])[] = [
  [/您/u, '你'],
  [/持久化卷|永久卷|持久性卷/u, '持久卷'],
  [/卷声明|卷申请|存储声明|声明（PVC|持久卷声明/u, '持久卷申领、申领'],
  [/存储类别|存储类型类|存储等级/u, '存储类'],
  [/附加到|附加卷|已附加|附着|挂接卷到|连接卷/u, '挂接'],
  [/分离卷|卸除|脱离|分离操作|取消挂接|解挂|解绑节点/u, '解除挂接（detach）'],
  [/装载|安装卷/u, '挂载'],
  [/取消挂载|解除挂载|反挂载/u, '卸载（unmount）'],
  [/供应卷|卷供应|动态供应|置备|供给/u, '制备'],
  [/回收政策|回收规则/u, '回收策略'],
  [/接入模式|存取模式/u, '访问模式'],
  [/污染/u, '污点'],
  [/容忍性|容忍值/u, '容忍度'],
  [/命名空间|名称空间/u, '名字空间'],
  [/终结器|终止器|析构器/u, 'Finalizer'],
  [/守护进程集|有状态集|有状态副本集|部署对象/u, 'DaemonSet、StatefulSet、Deployment'],
  [/容器组|豆荚/u, 'Pod'],
  [/结点/u, '节点'],
  [/逐出/u, '驱逐'],
  [/垃圾回收器/u, '垃圾收集器'],
  [/拥有者引用|所有者引用/u, '属主引用'],
  [/快照类别/u, '卷快照类'],
  [/控制面(?!板)/u, '控制平面'],
  [/优雅(关闭|终止|删除|期)/u, '体面'],
  [/心跳包/u, '心跳'],
  [/线程|话题串|讨论串/u, '消息列（thread）'],
];

/** What is wrong with the Chinese of a text, one line each. `names` are the names in the state that it speaks of. */
export function faultsOfText(text: Text, names: ReadonlySet<string> = new Set()): readonly string[] {
  const { en, zh } = text;
  const prose = withoutCode(zh);
  return [
    ...missingHan(en, zh),
    ...wrongWords.flatMap(([wrong, right]) =>
      wrong.test(prose) ? [`“${wrong.exec(prose)?.[0]}”: write ${right}`] : [],
    ),
    ...matches(prose, /\p{Script=Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Script=Han}/gu, 'a space is missing between'),
    ...matches(
      prose,
      /\p{Script=Han} ?[,;:?!](?=\s|$|\p{Script=Han})|\p{Script=Han} ?\.(?=\s|$)|\p{Script=Han} ?\(|\) ?\p{Script=Han}/gu,
      'half-width punctuation',
    ),
    ...matches(
      prose,
      /[，。；：？！（）、][ \t]|[ \t][，。；：？！（）、]/gu,
      'a space next to full-width punctuation',
    ),
    ...matches(prose, /\p{Script=Han}[ \t]+\p{Script=Han}/gu, 'a space between Chinese words'),
    ...matches(prose, /[，。；：、]{2}/gu, 'doubled punctuation'),
    ...numbersIn(en)
      .filter((n) => !numbersIn(zh).includes(n))
      .map((n) => `${n} is missing`),
    ...numbersIn(zh)
      .filter((n) => !numbersIn(en).includes(n) && !wordedIn(en).includes(n))
      .map((n) => `${n} is not in the English`),
    ...codeIn(en)
      .filter((code) => !zh.includes(code))
      .map((code) => `${code} is missing`),
    ...[...names].filter((name) => en.includes(name) && !zh.includes(name)).map((name) => `${name} is missing`),
    ...(/[。；：，]/u.test(en) ? ['Chinese punctuation in the English'] : []),
    ...(/undefined|NaN|\[object/.test(en + zh) ? ['a value was not written'] : []),
    ...(en.trim() === '' || zh.trim() === '' ? ['is empty'] : []),
  ];
}

/** What is wrong with what a person reads: Chinese style, and English that was left in it. */
export function faultsOfProse(prose: string): readonly string[] {
  const plain = prose
    .replaceAll(/```[\s\S]*?```/g, 'Code')
    .replaceAll(/`[^`]*`/g, 'Code')
    .replaceAll(/<[^>]*>/g, 'Link')
    .replaceAll(/:[a-z_]+:/g, '')
    .replaceAll(/[*•]/g, '');
  return [
    ...wrongWords.flatMap(([wrong, right]) =>
      wrong.test(plain) ? [`“${wrong.exec(plain)?.[0]}”: write ${right}`] : [],
    ),
    ...matches(plain, /\p{Script=Han}[A-Za-z0-9]|[A-Za-z0-9]\p{Script=Han}/gu, 'a space is missing between'),
    ...matches(plain, /\b[a-z]+ [a-z]+ [a-z]+ [a-z]+\b/g, 'English was left'),
  ];
}

/** A text without a Chinese character must be a name, the same in both. */
function missingHan(en: string, zh: string): readonly string[] {
  if (/\p{Script=Han}/u.test(zh)) return [];
  return en === zh && !/\s/.test(zh.trim()) ? [] : [`no Chinese: ${zh}`];
}

/** Commands and paths are code, and their spaces and punctuation are their own. */
function withoutCode(text: string): string {
  return text.replaceAll(/`[^`]*`/g, 'Code');
}

function matches(text: string, pattern: RegExp, says: string): readonly string[] {
  return [...text.matchAll(pattern)].map(([found]) => `${says}: “${found}”`);
}

const numberWords: Readonly<Record<string, string>> = {
  one: '1',
  two: '2',
  three: '3',
  four: '4',
  five: '5',
  six: '6',
};

/** Numbers that stand for themselves: no part of a name or of a version. */
function numbersIn(text: string): readonly string[] {
  return [...new Set([...text.matchAll(/(?<![\w.-])\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w-])/g)].map(([n]) => n))];
}

function wordedIn(text: string): readonly string[] {
  return [...text.toLowerCase().matchAll(/[a-z]+/g)].flatMap(([word]) => numberWords[word] ?? []);
}

function codeIn(text: string): readonly string[] {
  return [...new Set([...text.matchAll(/`[^`]+`/g)].map(([code]) => code))];
}

/** Every text inside a value, at any depth. */
export function textsOf(value: unknown): readonly Text[] {
  if (isText(value)) return [value];
  if (Array.isArray(value)) return value.flatMap(textsOf);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, item]) => (silent.has(name) ? [] : textsOf(item)));
}

/** Data of the cluster: a map with the keys `en` and `zh` in it is no text. */
const silent: ReadonlySet<string> = new Set(['params', 'plan', 'value', 'facts']);
