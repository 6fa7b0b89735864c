import { Option } from 'commander';
import { languages } from '../domain/text.ts';

/** `--language`, for every word that tells sentences. Help, usage and errors are English, as those of kubectl are. */
export function languageOption(): Option {
  return new Option('--language <language>', 'the language of the sentences').choices([...languages]).default('en');
}
