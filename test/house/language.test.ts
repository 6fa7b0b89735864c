import { globSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../handlers/commands/index.ts';
import { type Catalogue, diagnose } from '../../src/diagnose.ts';
import { Refused } from '../../src/domain/errors.ts';
import { describeState, planStates } from '../../src/domain/plan.ts';
import { proofs } from '../../src/domain/remediation.ts';
import type { Finding } from '../../src/domain/report.ts';
import { reportIn } from '../../src/domain/spoken.ts';
import { languages } from '../../src/domain/text.ts';
import { clusterOf, loadRemediationFixtures } from '../remediations/fixtures.ts';
import { faultsOfProse, faultsOfText, textsOf, wrongWords } from '../support/chinese.ts';
import { type KnownState, knownStates } from '../support/findings.ts';
import { faultIds, loadCatalogue, toCluster } from '../support/fixture.ts';

/** What is said in the states that the tests know, by the fault that says it. */
let catalogue: Catalogue;
const said = new Map<string, { readonly finding: Finding; readonly names: ReadonlySet<string> }[]>();
const asides: unknown[] = [];
const cost = { requests: 0, objects: 0, bytes: 0, milliseconds: 0 };

beforeAll(async () => {
  catalogue = await loadCatalogue();
  for (const state of knownStates()) hear(state);
}, 120_000);

function hear({ objects, scope, notRead, now, faults }: KnownState): void {
  const asked = faults ? catalogue.faults.filter(({ id }) => faults.includes(id)) : catalogue.faults;
  const report = diagnose(toCluster(objects, { notRead, now }), scope, { ...catalogue, faults: asked }, cost);
  const names = namesIn(objects);
  for (const finding of report.findings) {
    const list = said.get(finding.fault) ?? [];
    list.push({ finding, names });
    said.set(finding.fault, list);
  }
  asides.push(report.unknown, report.unexplained);
}

/** Names that no English word can be taken for. */
function namesIn(value: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  const walk = (one: unknown): void => {
    if (typeof one === 'string') {
      if (/^[\w./:-]{2,80}$/.test(one) && /\d|.[-./].*[-./]/.test(one)) names.add(one);
    } else if (Array.isArray(one)) one.forEach(walk);
    else if (typeof one === 'object' && one !== null) Object.values(one).forEach(walk);
  };
  walk(value);
  return names;
}

function faultsOf(value: unknown, names?: ReadonlySet<string>): readonly string[] {
  return textsOf(value).flatMap((text) =>
    faultsOfText(text, names).map((fault) => `${fault} in “${text.zh}” (${text.en})`),
  );
}

describe.each(faultIds())('the fault %s', (id) => {
  it('says in both languages what would have prevented it', () => {
    const prevention = catalogue.faults.find((fault) => fault.id === id)?.prevention;
    expect(prevention?.en).toMatch(/^[A-Z].*\.$/);
    expect(faultsOf([prevention])).toEqual([]);
  });

  it('says the same in good Chinese and in English', () => {
    const faults = (said.get(id) ?? []).flatMap(({ finding, names }) => faultsOf({ ...finding, offers: [] }, names));
    expect([...new Set(faults)]).toEqual([]);
  });

  it('is rendered in both languages without a word missing', () => {
    for (const { finding } of said.get(id) ?? []) {
      for (const language of languages) {
        const [spoken] = reportIn(reportWith(finding), language).findings;
        expect(JSON.stringify(spoken)).not.toMatch(/undefined|NaN|\[object/);
      }
    }
  });
});

function reportWith(finding: Finding) {
  return {
    version: 1 as const,
    cluster: { name: null, uid: null },
    now: '2026-11-30T12:00:00Z',
    scope: { kind: 'Cluster', namespace: null, name: null },
    findings: [finding],
    unknown: [],
    unexplained: [],
    read: cost,
  };
}

const fixtures = loadRemediationFixtures();
describe.each([...new Set(fixtures.map(({ id }) => id))])('the remediation %s', (id) => {
  /** Its page, and what it says in each of its fixtures. */
  const spoken = (): readonly { readonly words: unknown; readonly names: ReadonlySet<string> }[] => {
    const remediation = catalogue.remediations.find((one) => one.id === id);
    if (!remediation) throw new Error(`no remediation ${id}`);
    const own = fixtures
      .filter((fixture) => fixture.id === id)
      .map((fixture) => {
        const says = [];
        try {
          const cluster = clusterOf(fixture);
          says.push(...remediation.preflight(fixture.params, cluster));
          remediation.plan(fixture.params, cluster);
        } catch (error) {
          if (!(error instanceof Refused)) throw error;
          says.push(error.says);
        }
        const words = [{ title: remediation.title(fixture.params) }, ...says.map((one) => ({ says: one }))];
        return { words, names: namesIn([fixture.params, fixture.objects]) };
      });
    return [{ words: remediation.doc, names: new Set<string>() }, ...own];
  };

  it('says the same in good Chinese and in English', () => {
    expect([...new Set(spoken().flatMap(({ words, names }) => faultsOf(words, names)))]).toEqual([]);
  });

  it('has a title that fits a button in both languages', () => {
    const remediation = catalogue.remediations.find((one) => one.id === id);
    for (const { params } of fixtures.filter((fixture) => fixture.id === id)) {
      for (const language of languages) expect(remediation?.title(params)[language].trim()).not.toBe('');
    }
  });
});

describe('the words that belong to no fault', () => {
  it('are good Chinese', () => {
    const words = [asides, Object.values(proofs), planStates.map(describeState), commands.map(({ does }) => does)];
    expect([...new Set(faultsOf(words))]).toEqual([]);
  });
});

it('is good Chinese in the source as well, whether a test has heard it or not', () => {
  const written = /\bzh(?:: (?=['"])|(?=`))(['"`])((?:(?!\1)[^\\]|\\.)*)\1/g;
  const faults = globSync('{src,handlers,jobs}/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(written)].flatMap(([, , text = '']) =>
      text
        .replaceAll(/\\`[^`]*\\`/g, 'Code')
        .replaceAll(/“[^”\p{Script=Han}]*”/gu, '“”')
        .replaceAll('\\n', '\n')
        .split(/\$\{(?:[^{}]|\{[^{}]*\})*\}/)
        .flatMap((part) => faultsOfProse(part).map((fault) => `${file}: ${fault} in “${part}”`)),
    ),
  );
  expect(faults).toEqual([]);
});

it('no sentence of our own is passed off as a quotation', () => {
  const files = globSync('{src,handlers,jobs}/**/*.ts');
  const own = files.filter((file) => /\bverbatim\(\s*['"`]/.test(readFileSync(file, 'utf8')));
  expect(own).toEqual([]);
});

it('a view has no words of its own: they stand in src/locales', () => {
  const words = /(['"`])(?:(?!\1)[^\n\\])*[a-z]{2,} [a-z]{2,}(?:(?!\1)[^\n\\])*\1/g;
  const own = globSync('src/slack/views/*.ts').flatMap((file) => {
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    return [...code.matchAll(words)]
      .map(([found]) => found)
      .filter((found) => !/^.(?:echo|kubectl|\/?k8s-storage) /.test(found));
  });
  expect(own).toEqual([]);
});

describe('the check itself', () => {
  it.each([
    ['no Chinese', { en: 'it waits', zh: 'it waits' }],
    ['a wrong word', { en: 'volume', zh: '持久化卷' }],
    ['another wrong word', { en: 'you', zh: '您' }],
    ['no space', { en: 'node n3', zh: '节点n3' }],
    ['half-width punctuation', { en: 'wait, then', zh: '等待, 然后' }],
    ['half-width brackets', { en: 'a taint (x)', zh: '污点 (x)' }],
    ['a space too many', { en: 'wait. Then', zh: '等待。 然后' }],
    ['a space inside Chinese', { en: 'the node waits', zh: '节点 等待' }],
    ['a number that is missing', { en: '12 min', zh: '分钟' }],
    ['a number of its own', { en: 'min', zh: '12 分钟' }],
    ['code that is missing', { en: 'write `x y`', zh: '请写 `z`' }],
    ['a name that is missing', { en: 'claim data-db-0 waits', zh: '申领正在等待' }],
    ['a value that was not written', { en: 'node undefined', zh: '节点 undefined' }],
  ])('sees %s', (_, text) => {
    expect(faultsOfText(text, new Set(['data-db-0']))).not.toEqual([]);
  });

  it('passes good Chinese', () => {
    const text = {
      en: 'one claim data-db-0 has waited for 12 min (`kubectl get pvc`).',
      zh: '1 个申领 data-db-0 已等待 12 分钟（`kubectl get pvc`）。',
    };
    expect(faultsOfText(text, new Set(['data-db-0']))).toEqual([]);
    expect(faultsOfText({ en: 'delete-pod', zh: 'delete-pod' })).toEqual([]);
  });

  it('and the glossary for people have the same right words', () => {
    const glossary = readFileSync('docs/glossary-zh.md', 'utf8');
    const missing = wrongWords
      .flatMap(([, right]) => right.split('、'))
      .filter((right) => !glossary.includes(right.replace(/（.*/, '')));
    expect(missing).toEqual([]);
  });
});
