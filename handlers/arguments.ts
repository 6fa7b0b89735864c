import { parseArgs } from 'node:util';
import { en, listed, sentences, type Text, zh } from '../src/domain/text.ts';
import { shown } from './names.ts';

export type Arguments =
  | {
      readonly kind: 'right';
      readonly words: readonly string[];
      readonly namespace: string | undefined;
      readonly cluster: string | undefined;
      readonly for: string | undefined;
    }
  | { readonly kind: 'wrong'; readonly says: Text };

const options = {
  namespace: { type: 'string', short: 'n' },
  cluster: { type: 'string' },
  for: { type: 'string' },
} as const;

const optionWords = { namespace: '`-n NAMESPACE`', cluster: '`--cluster NAME`', for: '`--for TIME`' } as const;

/** The words and options of a command; only `allowed` options are known to it. */
export function parseArguments(args: readonly string[], allowed: readonly (keyof typeof options)[]): Arguments {
  try {
    const known = Object.fromEntries(Object.entries(options).filter(([name]) => allowed.some((one) => one === name)));
    const { values, positionals } = parseArgs({
      args: [...args],
      options: known,
      allowPositionals: true,
      strict: true,
    });
    return {
      kind: 'right',
      words: positionals,
      namespace: textOf(values['namespace']),
      cluster: textOf(values['cluster']),
      for: textOf(values['for']),
    };
  } catch (error) {
    return { kind: 'wrong', says: sentenceOf(error, allowed) };
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** node:util names the option between quotes; its own sentences speak to programmers. */
function sentenceOf(error: unknown, allowed: readonly (keyof typeof options)[]): Text {
  const message = error instanceof Error ? error.message : '';
  const option = /'(-[^'\s,]*)/.exec(message)?.[1] ?? '';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const known = listed(allowed.map((name) => optionWords[name]));
    return sentences(
      { en: en`I do not know the option \`${shown(option)}\`.`, zh: zh`没有 \`${shown(option)}\` 这个选项。` },
      allowed.length === 0
        ? { en: 'There are none here.', zh: '这里没有任何选项。' }
        : { en: en`There is ${known}.`, zh: zh`可用的有 ${known}。` },
    );
  }
  return {
    en: en`The option \`${shown(option)}\` needs a value after it.`,
    zh: zh`选项 \`${shown(option)}\` 后面需要一个值。`,
  };
}

const UNITS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LONGEST_MS = 30 * UNITS.d;

/** `30m`, `4h`, `2d` in milliseconds; undefined for anything else, for nothing and for more than 30 days. */
export function parseSpan(text: string): number | undefined {
  const found = /^(\d{1,6})([mhd])$/.exec(text);
  if (!found) return undefined;
  const unit = found[2] === 'm' ? UNITS.m : found[2] === 'h' ? UNITS.h : UNITS.d;
  const ms = Number(found[1]) * unit;
  return ms > 0 && ms <= LONGEST_MS ? ms : undefined;
}
