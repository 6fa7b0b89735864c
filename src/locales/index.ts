import type { Language } from '../domain/text.ts';
import { en, type Locale } from './en.ts';
import { zh } from './zh.ts';

/** The words of views and of the command line, by language. */
export const locales: Readonly<Record<Language, Locale>> = { en, zh };
