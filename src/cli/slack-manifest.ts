import type { Command } from 'commander';
import type { Language, Text } from '../domain/text.ts';
import { type CliDeps, Exit } from './deps.ts';
import { languageOption } from './language.ts';

/**
 * Each scope that the app asks for, and what it is for: a method of the Web API that is called with it, or a feature of
 * the manifest. A scope stands here only when something uses it.
 */
export const scopes = {
  'app_mentions:read': ['event app_mention'],
  'chat:write': ['chat.postMessage', 'chat.update', 'chat.postEphemeral'],
  'files:write': ['files.getUploadURLExternal', 'files.completeUploadExternal'],
  commands: ['slash command', 'message shortcut'],
  'users:read': ['users.info'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** Methods that need no scope of the bot's token (docs.slack.dev, `reference/methods`). */
export const scopeless = ['auth.test', 'views.open', 'views.publish'] as const;

export interface ManifestOptions {
  /** Where Slack reaches the bot; null for Socket Mode. */
  readonly url: string | null;
  /** Slack shows the words of a manifest to everybody alike, so a workspace has them in one language. */
  readonly language: Language;
}

const words = {
  description: {
    en: 'Diagnoses Kubernetes storage incidents and runs approved repairs',
    zh: '诊断 Kubernetes 存储事故，并执行经过批准的修复',
  },
  longDescription: {
    en: 'Type /k8s-storage diagnose to find out why a claim, a volume or a pod is stuck. The answer is a thread: the cause first, its evidence, and the repairs that can be made, each with Approve and Reject. A repair shows every write before anybody says yes, is carried out once, verified, and kept in an audit trail with who approved it and why. The bot never changes a cluster without a recorded human approval.',
    zh: '输入 /k8s-storage diagnose，即可找出申领、卷或 Pod 卡住的原因。答复是一个消息列：首先是原因，然后是证据，以及可以进行的修复，每项修复都带有“批准”和“拒绝”按钮。在任何人批准之前，修复会列出它的每一个写入操作；它只执行一次，执行后会验证结果，并连同批准人和批准理由一起保存在审计记录中。没有记录在案的人工批准，机器人绝不会更改集群。谁可以批准、需要几个人批准，取决于修复的风险；发起诊断的人不能独自批准自己的修复。',
  },
  shortcut: { en: 'Diagnose storage here', zh: '在此诊断存储' },
  shortcutDoes: { en: "Look again at this thread's incident", zh: '重新查看这个消息列的事故' },
  command: { en: 'Diagnose and repair Kubernetes storage', zh: '诊断和修复 Kubernetes 存储' },
} as const satisfies Readonly<Record<string, Text>>;

/** The app manifest, schema version 2 of `slackapi/manifest-schema`. */
export function slackManifest(options: ManifestOptions): unknown {
  const { language } = options;
  const requestUrl = options.url === null ? {} : { request_url: options.url };
  return {
    _metadata: { major_version: 2, minor_version: 1 },
    display_information: {
      name: 'K8s Storage Bot',
      description: words.description[language],
      long_description: words.longDescription[language],
      background_color: '#1f3a5f',
    },
    features: {
      app_home: { home_tab_enabled: true, messages_tab_enabled: true, messages_tab_read_only_enabled: true },
      bot_user: { display_name: 'k8s-storage', always_online: true },
      shortcuts: [
        {
          name: words.shortcut[language],
          type: 'message',
          callback_id: 'storage_diagnose_message',
          description: words.shortcutDoes[language],
        },
      ],
      slash_commands: [
        {
          command: '/k8s-storage',
          ...(options.url === null ? {} : { url: options.url }),
          description: words.command[language],
          usage_hint: 'diagnose pvc/NAME -n NAMESPACE | status | incidents | help',
          should_escape: true,
        },
      ],
    },
    oauth_config: { scopes: { bot: Object.keys(scopes) } },
    settings: {
      event_subscriptions: { ...requestUrl, bot_events: ['app_home_opened', 'app_mention'] },
      interactivity: { is_enabled: true, ...requestUrl },
      org_deploy_enabled: false,
      socket_mode_enabled: options.url === null,
      token_rotation_enabled: false,
    },
  };
}

/** Adds `slack-manifest`: prints the manifest to paste at api.slack.com/apps, "From a manifest". */
export function addSlackManifestWord(program: Command, deps: Pick<CliDeps, 'out' | 'err'>): void {
  program
    .command('slack-manifest')
    .description("print the Slack app's manifest, with no scope that is not used")
    .option('--socket', 'for Socket Mode (SLACK_APP_TOKEN) instead of HTTP')
    .option('--url <url>', "the bot's public address", 'https://bot.example.com')
    .addOption(languageOption())
    .action((options: { readonly socket?: boolean; readonly url: string; readonly language: Language }) => {
      const url = options.socket ? null : eventsUrl(options.url);
      deps.out(`${JSON.stringify(slackManifest({ url, language: options.language }), null, 2)}\n`);
      if (options.socket)
        deps.err('Then make an app-level token with connections:write and set it as SLACK_APP_TOKEN.\n');
    });
}

function eventsUrl(address: string): string {
  if (!URL.canParse(address) || new URL(address).protocol !== 'https:') {
    throw new Exit(2, `--url ${address}: write the bot's public address, as in https://bot.example.com`);
  }
  const { origin, pathname } = new URL(address);
  return `${origin}${pathname.replace(/\/+$/, '').replace(/\/slack\/events$/, '')}/slack/events`;
}
