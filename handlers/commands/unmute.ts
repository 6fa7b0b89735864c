import { describeScope } from '../../src/domain/scope.ts';
import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';
import { parseTarget } from '../target.ts';

export const unmute = defineCommand({
  word: 'unmute',
  usage: 'unmute KIND/NAME [-n NAMESPACE] [--cluster NAME]',
  does: { en: 'lets alerts about it begin threads again', zh: '让它的告警重新新建消息列' },

  async run(args, actor, surface) {
    const given = parseArguments(args, ['namespace', 'cluster']);
    if (given.kind === 'wrong') return { text: given.says };
    const chosen = chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const target = parseTarget(given.words, given.namespace);
    if (target.kind === 'wrong') return { text: target.says };
    if (target.scope.kind === 'Cluster')
      return {
        text: {
          en: 'Unmute what? Write for example `unmute pvc/data-db-0 -n shop`.',
          zh: '要取消哪个对象的静音？例如 `unmute pvc/data-db-0 -n shop`。',
        },
      };
    const { user, channel } = actor;
    const { scope } = target;
    await surface.take(entryOf(actor, { kind: 'unmute', user, channel, cluster: chosen.cluster, scope }));
    return {
      text: {
        en: en`Asked to unmute ${describeScope(scope)}. The outcome is told here.`,
        zh: zh`已请求取消静音 ${describeScope(scope)}。结果会在此告知。`,
      },
    };
  },
});
