import { defineShortcut, entryOf } from '../../src/surface.ts';
import { lookingAgain, notMine, runWords } from '../words.ts';

/** "Diagnose storage here": looks again at the incident of the thread; help where there is none. */
export const diagnoseMessage = defineShortcut({
  id: 'storage_diagnose_message',

  async run(actor, surface) {
    const { user, channel, thread } = actor;
    const incident = thread === null ? undefined : await surface.askIncidentOfThread(channel, thread);
    if (incident) {
      await surface.take(entryOf(actor, { kind: 'recheck', user, channel, incident: incident.id }));
      return { kind: 'tell', text: lookingAgain };
    }
    const help = await runWords('help', actor, surface);
    return { kind: 'tell', text: notMine(help) };
  },
});
