/**
 * What people read of every fault, in both languages, in Slack, on a terminal and as Markdown: whole, within Slack's
 * limits, and in one language; of the states that the tests know, and of larger ones.
 */
import { beforeAll, describe, expect, it } from 'vitest';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import type { Cluster } from '../../src/domain/cluster.ts';
import { refKey } from '../../src/domain/ref.ts';
import type { Report } from '../../src/domain/report.ts';
import { type Language, languages } from '../../src/domain/text.ts';
import { clean } from '../../src/domain/visible.ts';
import { locales } from '../../src/locales/index.ts';
import { kubectlLine } from '../../src/slack/views/kubectl.ts';
import { faultsOfProse } from '../support/chinese.ts';
import { LONGEST_NAME, LONGEST_NAMESPACE, lengthened, multiplied } from '../support/crowd.ts';
import { faultIds, loadCatalogue, loadFixtures, parseScope, toCluster } from '../support/fixture.ts';
import { type Shown, shownOf } from '../support/shown.ts';

const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };
const COPIES = 12;
const fixtures = loadFixtures();
let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = await loadCatalogue();
});

interface State {
  readonly name: string;
  readonly report: Report;
  readonly cluster: Cluster;
  /** Everything that is said by the cluster and not by the bot. */
  readonly raw: string;
}

/** What the fixtures of a fault say, one of each kind of finding; `copies` times over when that many are asked for. */
function statesOf(id: string, copies = 0): readonly State[] {
  const seen = new Set<string>();
  return (fixtures.get(id) ?? []).flatMap(({ file, objects, scope, notRead, with: others }) => {
    const all = copies === 0 ? objects : multiplied(objects, copies);
    const cluster = toCluster(all, { notRead });
    const asked = catalogue.faults.filter((fault) => fault.id === id || others.includes(fault.id));
    const looked = copies === 0 ? parseScope(scope) : ({ kind: 'Cluster' } as const);
    const report = diagnose(cluster, looked, { ...catalogue, faults: asked }, cost);
    const own = report.findings.filter(({ fault }) => fault === id);
    const key = own.map(({ reason, verdict, offers }) => `${reason} ${verdict} ${offers.length}`).join('\n');
    if (own.length === 0 || (copies > 0 && seen.has(key))) return [];
    seen.add(key);
    return [{ name: file, report, cluster, raw: JSON.stringify(all) }];
  });
}

describe.each(faultIds())('what is shown of %s', (id) => {
  it.each(languages)('is whole, in %s', (language) => {
    const states = statesOf(id);
    expect(states).not.toEqual([]);
    expect(states.flatMap((state) => troublesIn(state, language))).toEqual([]);
  });

  it.each(languages)('is whole with the longest names and many objects, in %s', (language) => {
    const states = [...statesOf(id), ...statesOf(id, COPIES)].map((state) => {
      const report = lengthened(state.report);
      const said = report.findings.flatMap(({ evidence }) => evidence.map(({ value }) => value));
      return { ...state, report, raw: `${state.raw} ${said.join(' ')}` };
    });
    expect([...new Set(states.flatMap((state) => troublesIn(state, language)))]).toEqual([]);
  });
});

/** Everything that is wrong with what is shown of a state, one line each. */
function troublesIn({ name, report, cluster, raw }: State, language: Language): readonly string[] {
  const commands = commandsOf(report, language);
  return shownOf(report, cluster, catalogue, language).flatMap((shown) =>
    [
      ...shown.refused,
      ...shown.texts.flatMap((text) => [
        ...cutCommands(text, shown, commands),
        ...unwritten(text, raw),
        ...(language === 'zh' ? leftEnglish(text, raw) : []),
      ]),
    ].map((trouble) => `${name}, ${shown.where}: ${trouble}`),
  );
}

/** Every line for a shell that the report hands out, and the code that its sentences speak of. */
function commandsOf({ findings, cluster }: Report, language: Language): ReadonlySet<string> {
  const lines = findings.flatMap(({ manual, offers }) => [
    ...manual.flatMap(({ command }) => command ?? []),
    ...offers.flatMap(({ plan }) =>
      plan.map((write) => kubectlLine(write, cluster.name ?? 'prod-eu', locales[language])),
    ),
  ]);
  const spoken = [...JSON.stringify(findings).matchAll(/`([^`]+)`/g)].map(([, code = '']) =>
    code.replaceAll('\\"', '"'),
  );
  return new Set([...lines, ...spoken].map((line) => clean(line).replaceAll('`', "'")));
}

/** A line for a shell is shown whole or not at all, and every code span has its end. */
function cutCommands(text: string, { where }: Shown, commands: ReadonlySet<string>): readonly string[] {
  if (where === 'terminal') {
    const lines = [...text.matchAll(/^ +\$ (.*)$/gm)].map(([, line = '']) => clean(line).replaceAll('`', "'"));
    return lines.filter((line) => !commands.has(line)).map((line) => `not whole: ${line}`);
  }
  const plain = text.replaceAll('\\`', "'");
  const blocks = [...plain.matchAll(/```\n([\s\S]*?)\n```/g)].flatMap(([, block = '']) => block.split('\n'));
  const rest = plain.replaceAll(/```\n[\s\S]*?\n```/g, '');
  const spans = [...rest.matchAll(/(`+)(?!`)(.*?[^`])\1(?!`)/g)].map(([, , span = '']) => span);
  const open = rest.replaceAll(/(`+)(?!`)(.*?[^`])\1(?!`)/g, '').includes('`');
  const cut = [...blocks, ...spans]
    .map((line) => clean(line.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')))
    .filter((line) => /^(?:kubectl|echo|#) /.test(line) && !commands.has(line.replaceAll('`', "'")));
  return [...cut.map((line) => `not whole: ${line}`), ...(open ? [`code without an end: ${text}`] : [])];
}

/** Code and what the cluster says is not the bot's. */
function proseOf(text: string): string {
  return text
    .replaceAll(/```\n[\s\S]*?\n```/g, 'Code')
    .replaceAll(/(`+)(?!`)(.*?[^`])\1(?!`)/g, 'Code')
    .replaceAll(/&(?:lt|gt|amp);/g, '&')
    .replaceAll(/ ?:[a-z]+_[a-z_]+:/g, '')
    .replaceAll(/^ +(?:\$ |\S+ = |digest|摘要).*$/gm, '')
    .replaceAll(/^ +/gm, '');
}

const careless: readonly (readonly [RegExp, string])[] = [
  [/undefined|NaN|\[object/g, 'a value was not written'],
  [/\S {2,}\S/g, 'two spaces'],
  [/\(\s*\)|（\s*）|“\s*”/g, 'nothing between brackets'],
  [
    /[\w)”] [.,;:](?=\s|$)|\w\.\.(?!\.)|[,;:]{2}|[，。；：、]{2}|[.,;:][，。；：]|[，。；：、] \p{Script=Han}|\p{Script=Han} [，。；：、]/gmu,
    'punctuation',
  ],
];

function unwritten(text: string, raw: string): readonly string[] {
  const prose = proseOf(text);
  return careless.flatMap(([pattern, says]) =>
    [...prose.matchAll(pattern)]
      .filter(([found]) => !raw.includes(found.trim()))
      .map(({ index, 0: found }) => `${says}: “${prose.slice(Math.max(0, index - 40), index + found.length + 20)}”`),
  );
}

/** Kubernetes' own words, which a fault warns of. */
const eventOfLostClaim = 'Data on the volume is lost!';

function leftEnglish(text: string, raw: string): readonly string[] {
  return faultsOfProse(proseOf(text)).filter((fault) => {
    const words = /English was left: “(.*)”/.exec(fault)?.[1];
    return words === undefined || !`${raw} ${eventOfLostClaim}`.includes(words);
  });
}

/** Of each room of the catalogue one, to be read by a person: `npx vitest run test/house/shown.test.ts -u` writes anew. */
const read = [
  'multi-attach-node-down',
  'claim-held-by-finished-pod',
  'control-plane-unhealthy',
  'csi-controller-down',
  'detach-failed',
  'mount-failed-filesystem',
  'claim-provisioning-failed',
  'volume-released-in-use',
];

describe.each(read)('what a person has read of %s', (id) => {
  it.each(languages)('is what is shown, in %s', async (language) => {
    const [state] = statesOf(id);
    if (!state) throw new Error(`no state of ${id}`);
    const shown = shownOf(state.report, state.cluster, catalogue, language);
    const first = shown.filter(
      ({ where }, no) =>
        !/EXECUTING|ATTENTION|incident answer/.test(where) && shown.findIndex((one) => one.where === where) === no,
    );
    const parts = first.map(({ where, texts }) => `==== ${where}\n${texts.join('\n')}`);
    await expect(`${parts.join('\n')}\n`).toMatchFileSnapshot(`../data/shown/${id}.${language}.txt`);
  });
});

describe('the larger states', () => {
  it('hold findings about many objects, with the longest names', () => {
    const many = faultIds().filter((id) =>
      statesOf(id, COPIES).some(({ report }) => report.findings.some(({ affected }) => affected.length > COPIES)),
    );
    expect(many.length).toBeGreaterThan(30);
    const [state] = statesOf('multi-attach-node-down', COPIES);
    const names = lengthened(state?.report as Report).findings.flatMap(({ affected }) => affected);
    expect(new Set(names.map(({ name }) => name.length))).toEqual(new Set([LONGEST_NAME]));
    expect(names.map(({ namespace }) => namespace?.length ?? LONGEST_NAMESPACE)).toEqual(
      names.map(() => LONGEST_NAMESPACE),
    );
    expect(new Set(names.map(refKey)).size).toBe(names.length);
  });
});
