import type { Deps } from '../src/deps.ts';
import { type KnownPerson, languageOf, whyNotEligible } from '../src/domain/approval.ts';
import { Refused, Transient, Uncertain } from '../src/domain/errors.ts';
import type { IncidentFacts } from '../src/domain/postmortem.ts';
import { hashOf } from '../src/domain/report.ts';
import { scopeInWords } from '../src/domain/scope.ts';
import { en, type Language, type Text, textIn, zh } from '../src/domain/text.ts';
import type { Chat, Store } from '../src/ports.ts';
import { type PostmortemOptions, peopleOf, postmortem } from '../src/postmortem.ts';
import { postmortemAnswer } from '../src/slack/views/answers.ts';
import { esc, person } from '../src/slack/views/text.ts';
import { type Intake, type TellDeps, tell, whisper } from './tell.ts';

/** So long one process may take to hand the file over. */
const LEASE_MS = 60_000;
const MOST_NAMES = 20;

/** What it needs of everything that a job may use. */
export interface PostmortemDeps extends TellDeps {
  readonly store: Pick<
    Store,
    'incidentFacts' | 'beginPostmortem' | 'sharePostmortem' | 'endPostmortem' | 'finishRequest'
  >;
  readonly chat: TellDeps['chat'] & Pick<Chat, 'identity' | 'sendFile' | 'shareFile'>;
  readonly catalogue: Deps['catalogue'];
}

/**
 * Writes the post-mortem of an incident into its thread as a file: one for each state of the incident and each language,
 * whoever asks how often. Its language and time zone are those of who asks first. That Slack is asked to show it is
 * committed before; where its answer is lost, the person is told that it may be there, and only asking again makes another.
 */
export async function givePostmortem(
  { id, request }: Intake<'postmortem'>,
  deps: PostmortemDeps,
  signal: AbortSignal,
): Promise<void> {
  const { store, chat } = deps;
  const done = async (says?: Text) => {
    await store.finishRequest(id);
    if (says !== undefined) await whisper(deps, request, says, signal);
  };
  const [asker, { teamId, url }] = await Promise.all([chat.person(request.user, signal), chat.identity(signal)]);
  const mayNot = whyNotEligible(asker, teamId);
  if (mayNot !== undefined) return done(mayNot);
  const facts = await store.incidentFacts(request.incident);
  if (!facts)
    return done({
      en: en`No incident ${request.incident} is known here.`,
      zh: zh`这里没有事故 ${request.incident}。`,
    });
  const { incident } = facts;
  const { thread, channel } = incident;
  if (thread === null)
    return done({
      en: en`Incident ${incident.id} has no thread. On the command line, k8s-storage postmortem ${incident.id} writes it.`,
      zh: zh`事故 ${incident.id} 没有消息列。在命令行中可用 k8s-storage postmortem ${incident.id} 撰写。`,
    });
  const language = languageOf(asker) ?? deps.settings.language;
  const hash = stateOf(facts, language, deps);
  const turn = await store.beginPostmortem(incident.id, hash, LEASE_MS);
  if (turn === 'there') {
    await done();
    return tell(deps, request, (t) => postmortemAnswer(url, channel, thread, false, t), signal);
  }
  if (turn === 'busy') return done({ en: 'It is being written already.', zh: '正在撰写中。' });
  if (turn === 'uncertain') return done(maybeThere);
  const end = (isShared: boolean) => store.endPostmortem(incident.id, hash, isShared);
  try {
    const content = Buffer.from(await write(facts, language, timeZoneOf(asker), deps, signal), 'utf8');
    const file = await chat.sendFile({ name: `postmortem-${incident.id}.md`, content }, signal);
    await store.sharePostmortem(incident.id, hash);
    const comment = commentOf(facts, request.user, language);
    await chat.shareFile({ id: file, title: titleOf(facts, language), comment }, { channel, thread }, signal);
  } catch (error) {
    if (!(error instanceof Refused || error instanceof Transient || error instanceof Uncertain)) throw error;
    await end(false);
    if (error instanceof Transient) throw error;
    if (error instanceof Uncertain) return done(maybeThere);
    const why = error.says;
    return done({
      en: en`The post-mortem could not be uploaded: ${why}. The bot needs the scope files:write and must be in the channel; k8s-storage postmortem ${incident.id} writes it on the command line.`,
      zh: zh`事故复盘未能上传：${why}。机器人需要 files:write 权限并且必须在频道中；也可以在命令行中用 k8s-storage postmortem ${incident.id} 撰写。`,
    });
  }
  await end(true);
  await done();
  if (request.thread !== thread)
    await tell(deps, request, (t) => postmortemAnswer(url, channel, thread, true, t), signal);
}

const maybeThere: Text = {
  en: 'Slack did not say whether it took the post-mortem: it may stand in the thread already. If it does not, ask again.',
  zh: 'Slack 没有说明是否收到了事故复盘：它可能已在消息列中。如果没有，请再次请求。',
};

/** Names what it says, whoever asks and whatever their clock shows. */
function stateOf(facts: IncidentFacts, language: Language, deps: PostmortemDeps): string {
  return hashOf(postmortem(facts, { language, timeZone: 'UTC', ...preventionOf(deps) }));
}

async function write(
  facts: IncidentFacts,
  language: Language,
  timeZone: string,
  deps: PostmortemDeps,
  signal: AbortSignal,
): Promise<string> {
  const people = await Promise.all(
    peopleOf(facts)
      .slice(0, MOST_NAMES)
      .map((user) => deps.chat.person(user, signal)),
  );
  const names = new Map(people.flatMap((one) => ('unreadable' in one ? [] : [[one.id, one.name]])));
  return postmortem(facts, { language, timeZone, names, ...preventionOf(deps) });
}

function preventionOf({ catalogue }: PostmortemDeps): Pick<PostmortemOptions, 'prevention'> {
  return { prevention: (id) => catalogue.faults.find((fault) => fault.id === id)?.prevention };
}

function timeZoneOf(asker: KnownPerson): string {
  return 'unreadable' in asker ? 'UTC' : (asker.timeZone ?? 'UTC');
}

function titleOf({ incident }: IncidentFacts, language: Language): string {
  return textIn({ en: en`Post-mortem ${incident.id}`, zh: zh`事故复盘 ${incident.id}` }, language);
}

function commentOf({ incident }: IncidentFacts, user: string, language: Language): string {
  const about = esc(textIn(scopeInWords(incident.scope), language), 600);
  return textIn(
    {
      en: en`Post-mortem of ${about}, asked for by ${person(user)}.`,
      zh: zh`${about} 的事故复盘，由 ${person(user)} 请求。`,
    },
    language,
  );
}
