import type { Person } from '../../src/domain/approval.ts';

/** A full member of the bot's own workspace, in whatever differs from that. */
export function memberOf(id: string, more: Partial<Person> = {}): Person {
  return {
    id,
    teamId: 'T1',
    name: id,
    isDeleted: false,
    isBot: false,
    isRestricted: false,
    isUltraRestricted: false,
    isStranger: false,
    locale: undefined,
    ...more,
  };
}
