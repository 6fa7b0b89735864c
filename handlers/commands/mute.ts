import { describeScope } from '../../src/domain/scope.ts';
import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseAbout } from '../about.ts';
import { parseSpan } from '../arguments.ts';

const DEFAULT = '4h';

export const mute = defineCommand({
  word: 'mute',
  usage: 'mute KIND/NAME [-n NAMESPACE] [--cluster NAME] [--for 4h]',
  does: {
    en: 'lets alerts about an object, or about a whole namespace with `-n` alone, begin no thread for that long',
    zh: '在这段时间内，某个对象（或仅用 `-n` 指定的整个名字空间）的告警不再新建消息列',
  },

  async run(args, actor, surface) {
    const about = parseAbout(args, surface, ['for']);
    if (about.kind === 'wrong') return { text: about.says };
    if (about.scope.kind === 'Cluster')
      return {
        text: {
          en: 'Mute what? Write for example `mute pvc/data-db-0 -n shop --for 4h`.',
          zh: '要静音哪个对象？例如 `mute pvc/data-db-0 -n shop --for 4h`。',
        },
      };
    const forMs = parseSpan(about.for ?? DEFAULT);
    if (forMs === undefined)
      return {
        text: {
          en: 'For how long? Write something like `--for 30m`, `--for 4h` or `--for 2d`, 30 days at most.',
          zh: '静音多久？例如 `--for 30m`、`--for 4h` 或 `--for 2d`，最多 30 天。',
        },
      };
    const { user, channel } = actor;
    const { cluster, scope } = about;
    await surface.take(entryOf(actor, { kind: 'mute', user, channel, cluster, scope, forMs }));
    return {
      text: {
        en: en`Asked to mute ${describeScope(scope)}. The outcome is told here.`,
        zh: zh`已请求静音 ${describeScope(scope)}。结果会在此告知。`,
      },
    };
  },
});
