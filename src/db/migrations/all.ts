import type { Migration } from 'kysely/migration';
import * as first from './0001-first.ts';
import * as alerts from './0002-alerts.ts';
import * as pictures from './0003-pictures.ts';
import * as language from './0004-language.ts';
import * as lookingBack from './0005-looking-back.ts';
import * as firingAlerts from './0006-firing-alerts.ts';

/** Every migration by name, in order. A migration that was released is never changed: the next one goes on from it. */
export const migrations: Readonly<Record<string, Migration>> = {
  '0001-first': first,
  '0002-alerts': alerts,
  '0003-pictures': pictures,
  '0004-language': language,
  '0005-looking-back': lookingBack,
  '0006-firing-alerts': firingAlerts,
};
