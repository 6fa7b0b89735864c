import { parseArgs } from 'node:util';
import { shown } from './names.ts';

export type Arguments =
  | {
      readonly kind: 'right';
      readonly words: readonly string[];
      readonly namespace: string | undefined;
      readonly cluster: string | undefined;
    }
  | { readonly kind: 'wrong'; readonly says: string };

const options = { namespace: { type: 'string', short: 'n' }, cluster: { type: 'string' } } as const;

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
    };
  } catch (error) {
    return { kind: 'wrong', says: sentenceOf(error, allowed) };
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** node:util names the option between quotes; its own sentences speak to programmers. */
function sentenceOf(error: unknown, allowed: readonly string[]): string {
  const message = error instanceof Error ? error.message : '';
  const option = /'(-[^'\s,]*)/.exec(message)?.[1] ?? '';
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION') {
    const known = allowed.map((name) => (name === 'namespace' ? '`-n NAMESPACE`' : '`--cluster NAME`')).join(' and ');
    return `I do not know the option \`${shown(option)}\`. ${known === '' ? 'There are none here.' : `There is ${known}.`}`;
  }
  return `The option \`${shown(option)}\` needs a value after it.`;
}
