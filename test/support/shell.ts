/** Reads a command as a POSIX shell would, as far as manual steps need it; throws for anything it would not take literally. */

/** One command of a line: its words, quotes resolved, and the file that its output goes to. */
export interface ShellCommand {
  readonly words: readonly string[];
  readonly into: string | undefined;
}

const SPECIAL = /[$`"\\;&<()*?[\]{}#!~\n]/;

/** `a | b > c` as its commands. A character that the shell would act on must stand in single quotes. */
export function parseShell(line: string): readonly ShellCommand[] {
  const commands: ShellCommand[] = [];
  let words: string[] = [];
  let into: string | undefined;
  let redirects = false;
  const end = () => {
    if (words.length === 0) throw new SyntaxError(`an empty command in ${line}`);
    commands.push({ words, into });
    words = [];
    into = undefined;
  };
  for (const word of wordsOf(line)) {
    if (word === PIPE) end();
    else if (word === REDIRECT) redirects = true;
    else if (redirects) {
      into = word;
      redirects = false;
    } else words.push(word);
  }
  end();
  return commands;
}

const PIPE = Symbol('|');
const REDIRECT = Symbol('>');

function* wordsOf(line: string): Generator<string | typeof PIPE | typeof REDIRECT> {
  let word: string | undefined;
  for (let at = 0; at < line.length; at += 1) {
    const char = line.charAt(at);
    if (char === "'") {
      const close = line.indexOf("'", at + 1);
      if (close < 0) throw new SyntaxError(`a quote is not closed in ${line}`);
      word = (word ?? '') + line.slice(at + 1, close);
      at = close;
    } else if (char === '\\' && line.charAt(at + 1) === "'") {
      word = `${word ?? ''}'`;
      at += 1;
    } else if (/[ |>]/.test(char)) {
      if (word !== undefined) yield word;
      word = undefined;
      if (char === '|') yield PIPE;
      if (char === '>') yield REDIRECT;
    } else if (SPECIAL.test(char)) throw new SyntaxError(`${char} is not quoted in ${line}`);
    else word = (word ?? '') + char;
  }
  if (word !== undefined) yield word;
}
