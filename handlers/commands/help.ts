import { en, type Language, type Text, textIn, zh } from '../../src/domain/text.ts';
import { defineCommand } from '../../src/surface.ts';

export const help = defineCommand({
  word: 'help',
  usage: 'help',
  does: {
    en: 'shows this text',
    zh: '显示这段说明',
  },

  async run(_args, _actor, surface, all) {
    const words = (language: Language) =>
      all.map(({ usage, does }) => `• \`${usage}\` ${textIn(does, language)}`).join('\n');
    const names = surface.clusters.map((name) => `\`${name}\``).join(', ');
    const clusters: Text =
      surface.clusters.length > 1 ? { en: en`\nClusters: ${names}.`, zh: zh`\n集群：${names}。` } : { en: '', zh: '' };
    return {
      text: {
        en: `*I find out why storage in Kubernetes is stuck, and repair it when people approve.*
Type \`/k8s-storage\` and one of these words:
${words('en')}
For example \`/k8s-storage diagnose pvc/data-db-0 -n shop\`.
In an incident's thread use the buttons, or mention me with \`status\`, \`recheck\`, \`evidence\`, \`commands\` or \`help\`.${clusters.en}`,
        zh: `*我找出 Kubernetes 存储卡住的原因，并在获得批准后进行修复。*
请输入 \`/k8s-storage\` 加上以下词之一：
${words('zh')}
例如 \`/k8s-storage diagnose pvc/data-db-0 -n shop\`。
在事故的消息列中请使用按钮，或者提及我并写上 \`status\`、\`recheck\`、\`evidence\`、\`commands\` 或 \`help\`。${clusters.zh}`,
      },
    };
  },
});
