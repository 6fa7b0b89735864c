import { describeScope, scopeInWords } from '../../src/domain/scope.ts';
import { en, type Text, verbatim, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf, type Reply } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { parseTarget } from '../target.ts';

export const audit = defineCommand({
  word: 'audit',
  usage: 'audit KIND/NAME|INCIDENT [-n NAMESPACE]',
  does: {
    en: 'shows who decided and did what, to an object or in an incident',
    zh: '显示谁对某个对象或在某个事故中做了什么决定和操作',
  },

  async run(args, actor, surface) {
    const given = parseArguments(args, ['namespace']);
    if (given.kind === 'wrong') return { text: given.says };
    const [first] = given.words;
    if (first === undefined)
      return {
        text: {
          en: 'Of what? Write `audit INCIDENT` or `audit KIND/NAME -n NAMESPACE`.',
          zh: '要查看什么？请写 `audit INCIDENT` 或 `audit KIND/NAME -n NAMESPACE`。',
        },
      };
    const { user, channel, thread } = actor;
    const ask = (about: string) =>
      surface.take(entryOf(actor, { kind: 'ask', user, channel, thread, topic: 'audit', about }));
    if (given.words.length === 1 && /^inc-[A-Za-z0-9-]{1,60}$/.test(first)) {
      await ask(first);
      return lookingUp(verbatim(first));
    }
    const target = parseTarget(given.words, given.namespace);
    if (target.kind === 'wrong') return { text: target.says };
    const about = describeScope(target.scope);
    await ask(about);
    return lookingUp(scopeInWords(target.scope));
  },
});

function lookingUp(about: Text): Reply {
  return {
    text: { en: en`Looking up the audit trail of ${about}.`, zh: zh`正在查找以下对象的审计记录：${about}。` },
  };
}
