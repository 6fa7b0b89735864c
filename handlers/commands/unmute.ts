import { describeScope } from '../../src/domain/scope.ts';
import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseAbout } from '../about.ts';

export const unmute = defineCommand({
  word: 'unmute',
  usage: 'unmute KIND/NAME [-n NAMESPACE] [--cluster NAME]',
  does: { en: 'lets alerts about it begin threads again', zh: '让它的告警重新新建消息列' },

  async run(args, actor, surface) {
    const about = parseAbout(args, surface);
    if (about.kind === 'wrong') return { text: about.says };
    if (about.scope.kind === 'Cluster')
      return {
        text: {
          en: 'Unmute what? Write for example `unmute pvc/data-db-0 -n shop`.',
          zh: '要取消哪个对象的静音？例如 `unmute pvc/data-db-0 -n shop`。',
        },
      };
    const { user, channel } = actor;
    const { cluster, scope } = about;
    await surface.take(entryOf(actor, { kind: 'unmute', user, channel, cluster, scope }));
    return {
      text: {
        en: en`Asked to unmute ${describeScope(scope)}. The outcome is told here.`,
        zh: zh`已请求取消静音 ${describeScope(scope)}。结果会在此告知。`,
      },
    };
  },
});
