import type { Command } from 'commander';
import { type CliDeps, Exit } from './deps.ts';

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
}

/** The app manifest, schema version 2 of `slackapi/manifest-schema`. */
export function slackManifest(options: ManifestOptions): unknown {
  const requestUrl = options.url === null ? {} : { request_url: options.url };
  return {
    _metadata: { major_version: 2, minor_version: 1 },
    display_information: {
      name: 'K8s Storage Bot',
      description: 'Diagnoses Kubernetes storage incidents and runs approved repairs',
      long_description:
        'Type /k8s-storage diagnose to find out why a claim, a volume or a pod is stuck. The answer is a thread: the cause first, its evidence, and the repairs that can be made, each with Approve and Reject. A repair shows every write before anybody says yes, is carried out once, verified, and kept in an audit trail with who approved it and why. The bot never changes a cluster without a recorded human approval.',
      background_color: '#1f3a5f',
    },
    features: {
      app_home: { home_tab_enabled: true, messages_tab_enabled: true, messages_tab_read_only_enabled: true },
      bot_user: { display_name: 'k8s-storage', always_online: true },
      shortcuts: [
        {
          name: 'Diagnose storage here',
          type: 'message',
          callback_id: 'storage_diagnose_message',
          description: "Look again at this thread's incident",
        },
      ],
      slash_commands: [
        {
          command: '/k8s-storage',
          ...(options.url === null ? {} : { url: options.url }),
          description: 'Diagnose and repair Kubernetes storage',
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
    .action((options: { readonly socket?: boolean; readonly url: string }) => {
      const url = options.socket ? null : eventsUrl(options.url);
      deps.out(`${JSON.stringify(slackManifest({ url }), null, 2)}\n`);
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
