import type { HomeView, KnownBlock } from '@slack/types';
import { planIn, recentIn } from '../../domain/spoken.ts';
import type { Locale } from '../../locales/en.ts';
import type { HomeNow, PlanInThread } from '../../surface.ts';
import { recentLine } from './answers.ts';
import { context, divider, header, type Mrkdwn, pack, section, some } from './blocks.ts';
import { threadLink } from './link.ts';
import { code, date, esc, person } from './text.ts';
import { voteWords } from './words.ts';

/** Of each list so many lines. */
const MOST = 15;

/**
 * The app's Home tab: what waits for this person, what is under way, what is open; then what the bot is for and how to
 * begin. It is drawn for one person from what was read now.
 */
export function homeView(clusters: readonly string[], now: HomeNow, t: Locale): HomeView {
  const names = some(clusters, 20, t, (name) => `• ${code(name, 200)}`).join('\n');
  return {
    type: 'home',
    blocks: [
      header(t.home.title),
      ...standing(now, t),
      divider,
      section(t.home.what),
      section(t.home.begin),
      section(t.home.thread),
      section(t.home.approval),
      ...(clusters.length === 0 ? [] : [section(t.home.clusters(names))]),
      context(t.home.everybody),
    ],
  };
}

function standing(now: HomeNow, t: Locale): readonly KnownBlock[] {
  switch (now.kind) {
    case 'hidden':
      return [context(t.home.nothingHere)];
    case 'unread':
      return [section(t.home.notRead)];
    case 'shown':
      return shown(now, t);
  }
}

function shown(now: Extract<HomeNow, { readonly kind: 'shown' }>, t: Locale): readonly KnownBlock[] {
  const { recent, waiting, running, pauses, url } = now;
  const at = Date.parse(now.at);
  const paused = pauses
    .slice(0, MOST)
    .map(({ cluster, actor, at: since }) => t.answers.paused(esc(cluster, 200), person(actor), date(since)));
  const incidents = recent.incidents.slice(0, MOST).map((one) => recentLine(recentIn(one, t.language), url, at, t));
  return [
    ...list(paused, 0, t),
    section(t.home.forYou),
    ...list(
      lines(waiting, (one) => waits(one, url, t)),
      waiting.length - MOST,
      t,
      t.home.nothingForYou,
    ),
    section(t.home.underWay),
    ...list(
      lines(running, (one) => runs(one, url, t)),
      running.length - MOST,
      t,
      t.home.nothingUnderWay,
    ),
    section(`*${t.answers.recent(recent.open, recent.ended)}*`),
    ...list(incidents, recent.open + recent.ended - incidents.length, t),
    context(t.home.asOf(date(now.at))),
  ];
}

function lines(plans: readonly PlanInThread[], write: (one: PlanInThread) => Mrkdwn): readonly Mrkdwn[] {
  return plans.slice(0, MOST).map(write);
}

/** At most four sections; what is not shown is counted, and where to find it is said. */
function list(written: readonly Mrkdwn[], left: number, t: Locale, nothing?: Mrkdwn): readonly KnownBlock[] {
  if (written.length === 0) return nothing === undefined ? [] : [section(nothing)];
  return pack(written, 4, t, t.where.listedBy('/k8s-storage incidents'), Math.max(0, left)).map(section);
}

function linkOf({ channel, thread }: PlanInThread, url: string): string | null {
  return thread === null ? null : threadLink(url, channel, thread);
}

function waits(one: PlanInThread, url: string, t: Locale): Mrkdwn {
  const plan = planIn(one.plan, t.language);
  return t.home.waits(
    esc(plan.title, 200),
    t.risk(plan.risk),
    voteWords(plan, t),
    date(plan.approveBy),
    linkOf(one, url),
  );
}

function runs(one: PlanInThread, url: string, t: Locale): Mrkdwn {
  const plan = planIn(one.plan, t.language);
  return t.home.runs(esc(plan.title, 200), plan.state, linkOf(one, url));
}
