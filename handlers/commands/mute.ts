import { describeScope } from '../../src/domain/scope.ts';
import { en, zh } from '../../src/domain/text.ts';
import { defineCommand, entryOf } from '../../src/surface.ts';
import { parseArguments, parseSpan } from '../arguments.ts';
import { chooseCluster } from '../clusters.ts';
import { parseTarget } from '../target.ts';

const DEFAULT = '4h';

export const mute = defineCommand({
  word: 'mute',
  usage: 'mute KIND/NAME [-n NAMESPACE] [--cluster NAME] [--for 4h]',
  does: {
    en: 'lets alerts about an object, or about a whole namespace with `-n` alone, begin no thread for that long',
    zh: '在这段时间内，某个对象（或仅用 `-n` 指定的整个名字空间）的告警不再新建消息列',
  },

  async run(args, actor, surface) {
    const given = parseArguments(args, ['namespace', 'cluster', 'for']);
    if (given.kind === 'wrong') return { text: given.says };
    const chosen = chooseCluster(given.cluster, surface);
    if (chosen.kind === 'wrong') return { text: chosen.says };
    const target = parseTarget(given.words, given.namespace);
    if (target.kind === 'wrong') return { text: target.says };
    if (target.scope.kind === 'Cluster')
      return {
        text: {
          en: 'Mute what? Write for example `mute pvc/data-db-0 -n shop --for 4h`.',
          zh: '要静音哪个对象？例如 `mute pvc/data-db-0 -n shop --for 4h`。',
        },
      };
    const forMs = parseSpan(given.for ?? DEFAULT);
    if (forMs === undefined)
      return {
        text: {
          en: 'For how long? Write something like `--for 30m`, `--for 4h` or `--for 2d`, 30 days at most.',
          zh: '静音多久？例如 `--for 30m`、`--for 4h` 或 `--for 2d`，最多 30 天。',
        },
      };
    const { user, channel } = actor;
    const { scope } = target;
    await surface.take(entryOf(actor, { kind: 'mute', user, channel, cluster: chosen.cluster, scope, forMs }));
    return {
      text: {
        en: en`Asked to mute ${describeScope(scope)}. The outcome is told here.`,
        zh: zh`已请求静音 ${describeScope(scope)}。结果会在此告知。`,
      },
    };
  },
});
