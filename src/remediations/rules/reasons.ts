import type { Text } from '../../domain/text.ts';

/** Each reason once: two objects often lead to the same words. */
export function uniqueReasons(reasons: readonly Text[]): readonly Text[] {
  return [...new Map(reasons.map((reason) => [reason.en, reason])).values()];
}

/** `Released`, or that an object has no phase yet, as it stands after `is`. */
export function phaseInWords(phase: string): Text {
  return phase === '' ? { en: 'in no phase', zh: '没有阶段' } : { en: phase, zh: `处于 ${phase}` };
}
