import type { HomeView } from '@slack/types';
import type { Locale } from '../../locales/en.ts';
import { context, header, section, some } from './blocks.ts';
import { code } from './text.ts';

/** The app's Home tab: what the bot is for and how to begin. It shows nothing of a cluster's inside. */
export function homeView(clusters: readonly string[], t: Locale): HomeView {
  const names = some(clusters, 20, t, (name) => `• ${code(name, 200)}`).join('\n');
  return {
    type: 'home',
    blocks: [
      header(t.home.title),
      section(t.home.what),
      section(t.home.begin),
      section(t.home.thread),
      section(t.home.approval),
      ...(clusters.length === 0 ? [] : [section(t.home.clusters(names))]),
      context(t.home.everybody),
    ],
  };
}
