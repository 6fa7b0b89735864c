import { describeScope } from '../../src/domain/scope.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { parseTarget } from '../target.ts';

export const audit = defineCommand({
  word: 'audit',
  usage: 'audit KIND/NAME|INCIDENT [-n NAMESPACE]',
  does: 'shows who decided and did what, to an object or in an incident',

  async run(args, actor, surface) {
    const given = parseArguments(args, ['namespace']);
    if (given.kind === 'wrong') return { text: given.says };
    const [first] = given.words;
    if (first === undefined) return { text: 'Of what? Write `audit INCIDENT` or `audit KIND/NAME -n NAMESPACE`.' };
    const { user, channel, thread } = actor;
    const ask = (about: string) =>
      surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'audit', about }));
    if (given.words.length === 1 && /^inc-[A-Za-z0-9-]{1,60}$/.test(first)) {
      await ask(first);
      return { text: `Looking up the audit trail of ${first}.` };
    }
    const target = parseTarget(given.words, given.namespace);
    if (target.kind === 'wrong') return { text: target.says };
    const about = describeScope(target.scope);
    await ask(about);
    return { text: `Looking up the audit trail of ${about}.` };
  },
});
