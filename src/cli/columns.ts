/** Columns that a text takes in a terminal: a Chinese character or mark takes two. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += WIDE.test(character) ? 2 : 1;
  return columns;
}

const WIDE = /[\p{Script=Han}，。；：、！？（）]/u;

const LABEL = 11;

/** A line of a table with two columns: what it is, and what it says. */
export function row(label: string, says: string): string {
  return `${label}${' '.repeat(Math.max(1, LABEL - columnsOf(label)))}${says}`;
}
