/**
 * Without control, format (bidirectional marks, zero-width characters, tags), private-use and invisible filler
 * characters and without halves of surrogate pairs; every run of white space is one blank.
 */
export function clean(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}]/gu, '')
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .trim();
}
