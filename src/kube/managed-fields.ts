const KEY = '"managedFields":[';
const QUOTE = '"'.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);
const OPEN = '['.charCodeAt(0);
const CLOSE = ']'.charCodeAt(0);

/**
 * The JSON of an API server without the items of any `managedFields`: half of what it sends and nothing that is read here,
 * but as slow to parse and as large in memory as all the rest. What is no whole JSON keeps its fault, for `JSON.parse` to
 * refuse.
 *
 * The key cannot be mistaken for text: inside a string both of its quotes would be escaped.
 */
export function withoutManagedFields(json: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let at = json.indexOf(KEY); at !== -1; at = json.indexOf(KEY, from)) {
    const items = at + KEY.length;
    kept.push(json.slice(from, items));
    // The end of another key: `"my\"managedFields":[`.
    from = json.charCodeAt(at - 1) === BACKSLASH ? items : endOfList(json, items);
  }
  kept.push(json.slice(from));
  return kept.join('');
}

/** Where the bracket stands that closes a list, of which `from` is the first character inside. */
function endOfList(json: string, from: number): number {
  let depth = 1;
  for (let at = from; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) at = endOfString(json, at);
    else if (code === OPEN) depth += 1;
    else if (code === CLOSE) {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return json.length;
}

/** Where the quote stands that closes a string, of which `from` is the opening one. */
function endOfString(json: string, from: number): number {
  let at = from + 1;
  while (at < json.length && json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
