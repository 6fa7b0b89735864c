import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { events } from '../../handlers/events/index.ts';
import { shortcuts } from '../../handlers/shortcuts/index.ts';
import { addSlackManifestWord, scopeless, scopes, slackManifest } from '../../src/cli/slack-manifest.ts';
import { methods } from '../../src/slack/chat.ts';
import { COMMAND } from '../../src/slack/listeners.ts';
import { faultsOfProse } from '../support/chinese.ts';

const schemaPath = join(import.meta.dirname, '../data/slack/manifest/schemas/manifest.schema.2.0.0.json');
const ajv = new Ajv({ strict: false, allErrors: true });
addFormats.default(ajv);
const validate = ajv.compile(JSON.parse(readFileSync(schemaPath, 'utf8')));

function printed(...args: readonly string[]): { readonly out: string; readonly err: string } {
  const out: string[] = [];
  const err: string[] = [];
  const program = new Command().exitOverride();
  addSlackManifestWord(program, { out: (text) => void out.push(text), err: (text) => void err.push(text) });
  program.parse(['slack-manifest', ...args], { from: 'user' });
  return { out: out.join(''), err: err.join('') };
}

describe.each<[string, readonly string[]]>([
  ['HTTP', []],
  ['Socket Mode', ['--socket']],
  ['a workspace that speaks Chinese', ['--language', 'zh']],
])('the manifest for %s', (_name, args) => {
  it('validates against the schema of Slack', () => {
    const manifest: unknown = JSON.parse(printed(...args).out);
    expect(validate(manifest), JSON.stringify(validate.errors)).toBe(true);
  });

  it('would not validate with a wrong name, so the schema is really asked', () => {
    const manifest = JSON.parse(printed(...args).out) as { display_information: { name: string } };
    manifest.display_information.name = 'x'.repeat(36);
    expect(validate(manifest)).toBe(false);
  });
});

it('has addresses for HTTP and none for Socket Mode', () => {
  expect(
    printed('--url', 'https://bot.corp.example/').out.match(/https:\/\/bot\.corp\.example\/slack\/events/g),
  ).toHaveLength(3);
  const socket = printed('--socket');
  expect(socket.out).not.toMatch(/url"/);
  expect(JSON.parse(socket.out)).toMatchObject({ settings: { socket_mode_enabled: true } });
  expect(socket.err).toMatch(/connections:write/);
});

it('has its words in the language that is asked for, and they are good Chinese', () => {
  const { display_information: shown, features } = JSON.parse(printed('--language', 'zh').out) as {
    display_information: { description: string; long_description: string };
    features: { shortcuts: { name: string; description: string }[]; slash_commands: { description: string }[] };
  };
  const told = [...features.shortcuts, ...features.slash_commands].map(({ description }) => description);
  for (const words of [shown.description, shown.long_description, ...told]) {
    expect(words).toMatch(/\p{Script=Han}/u);
    expect(faultsOfProse(words)).toEqual([]);
  }
});

it('refuses an address that Slack would not call', () => {
  expect(() => printed('--url', 'http://bot.example')).toThrow(/https/);
});

it('asks for no scope that no method or feature uses, and for every one that is needed', () => {
  const manifest = slackManifest({ url: null, language: 'en' }) as {
    oauth_config: { scopes: { bot: string[] } };
    settings: { event_subscriptions: { bot_events: string[] } };
  };
  expect(manifest.oauth_config.scopes.bot).toEqual(Object.keys(scopes));
  const covered = [...Object.values(scopes).flat(), ...scopeless] as readonly string[];
  expect(methods.filter((method) => !covered.includes(method))).toEqual([]);
  const used: readonly string[] = [
    ...methods,
    ...manifest.settings.event_subscriptions.bot_events.map((type) => `event ${type}`),
    'slash command',
    'message shortcut',
  ];
  const unused = Object.entries(scopes).filter(([, uses]) => !uses.every((use) => used.includes(use)));
  expect(unused).toEqual([]);
  expect(manifest.oauth_config.scopes.bot.filter((scope) => scope.endsWith(':history'))).toEqual([]);
});

it('names the doors that there are', () => {
  const manifest = JSON.stringify(slackManifest({ url: null, language: 'en' }));
  expect(manifest).toContain(`"command":"${COMMAND}"`);
  for (const shortcut of shortcuts) expect(manifest).toContain(`"callback_id":"${shortcut.id}"`);
  for (const event of events) expect(manifest).toContain(`"${event.type}"`);
});
