import { type Command, InvalidArgumentError, Option } from 'commander';
import { type Catalogue, diagnose, needsOf } from '../diagnose.ts';
import { chainOf, FEWEST_OBJECTS } from '../domain/chain.ts';
import { Cluster } from '../domain/cluster.ts';
import { absurd } from '../domain/errors.ts';
import { emptyObjects } from '../domain/objects.ts';
import { exitCodeOf, type ReadCost, type Report } from '../domain/report.ts';
import { findResourceOfKind, findResourceOfWord, type ResourceName, resourceNames } from '../domain/resources.ts';
import type { ScopeRef } from '../domain/scope.ts';
import { reportIn, type SpokenReport } from '../domain/spoken.ts';
import type { Language } from '../domain/text.ts';
import { locales } from '../locales/index.ts';
import { type CliDeps, Exit, noteUsage } from './deps.ts';
import { languageOption } from './language.ts';
import { renderMarkdown, renderText } from './render.ts';
import { parseScope, requireScope } from './scope.ts';

interface DiagnoseOptions {
  readonly namespace?: string;
  readonly context?: string;
  readonly snapshot?: readonly string[];
  readonly notRead?: readonly ResourceName[];
  readonly now?: number;
  readonly output: 'text' | 'json' | 'markdown';
  readonly language: Language;
  readonly picture?: Picture;
}

/** Where the picture goes, and as what. */
interface Picture {
  readonly path: string;
  readonly format: 'svg' | 'png';
}

/** `k8s-storage diagnose [KIND/NAME]`: the report of one scope, from a cluster or from saved objects. */
export function addDiagnoseWord(program: Command, deps: CliDeps): void {
  program
    .command('diagnose')
    .description(
      'say what is wrong with the storage of an object, a namespace or the whole cluster, and what can be done',
    )
    .argument(
      '[KIND/NAME]',
      'pod/db-0, pvc/data-db-0, pv/…, node/…; nothing: the whole cluster, or the namespace given with -n',
    )
    .option('-n, --namespace <name>', 'the namespace of the object, or the namespace to diagnose')
    .addOption(new Option('--context <name>', 'the kubeconfig context to read').conflicts('snapshot'))
    .option(
      '--snapshot <path...>',
      'read saved objects instead of a cluster: YAML or JSON, files, folders or archives, a must-gather, a cluster-info dump',
    )
    .option('--not-read <kind...>', 'a kind that must count as not read', collectKinds)
    .option('--now <rfc3339>', "the clock of the diagnosis (default: the files', else now)", parseTime)
    .addOption(
      new Option('--output <format>', 'how to print the report').choices(['text', 'json', 'markdown']).default('text'),
    )
    .option('--picture <file>', 'draw who holds what, the cause marked, into a file (.svg or .png)', parsePicture)
    .addOption(languageOption())
    .addHelpText(
      'after',
      '\nExit code: 0 nothing is wrong, 1 something is, 3 something that matters could not be read or explained, 2 the command failed.',
    )
    .action(async (target: string | undefined, options: DiagnoseOptions) => {
      const { report, cluster } = await makeReport(deps, parseScope(target, options.namespace), options);
      deps.out(print(reportIn(report, options.language), options, deps.catalogue));
      if (options.picture) await drawPicture(deps, report, cluster, options.picture);
      const code = exitCodeOf(report);
      if (code !== 0) throw new Exit(code);
    });
}

async function makeReport(
  deps: CliDeps,
  scope: ScopeRef,
  options: DiagnoseOptions,
): Promise<{ readonly report: Report; readonly cluster: Cluster }> {
  const { cluster, cost } = options.snapshot
    ? await readSaved(deps, options.snapshot, options)
    : await readLive(deps, scope, options);
  requireScope(cluster, scope);
  return { report: diagnose(cluster, scope, deps.catalogue, cost), cluster };
}

/** The first finding that has a chain: causes stand first. */
async function drawPicture(deps: CliDeps, report: Report, cluster: Cluster, picture: Picture): Promise<void> {
  for (const finding of report.findings) {
    const chain = chainOf(finding, cluster);
    if (!chain) continue;
    await deps.writeFile(picture.path, await deps.draw(chain, picture.format));
    return;
  }
  deps.err(`note: no picture was drawn: no finding has ${FEWEST_OBJECTS} objects that hang together\n`);
}

async function readSaved(deps: CliDeps, paths: readonly string[], options: DiagnoseOptions) {
  const { input, cost, notes } = await deps.readFiles(paths, { notRead: options.notRead ?? [], now: options.now });
  for (const note of notes) deps.err(`note: ${note}\n`);
  return { cluster: new Cluster(input), cost };
}

async function readLive(
  deps: CliDeps,
  scope: ScopeRef,
  options: DiagnoseOptions,
): Promise<{ readonly cluster: Cluster; readonly cost: ReadCost }> {
  const reader = await deps.openReader(options.context);
  const { cluster, cost } = await reader.read(
    { scope, needs: needsOf(deps.catalogue, scope) },
    AbortSignal.timeout(READING_MS),
  );
  noteUsage(cluster, deps);
  const notRead = options.notRead ?? [];
  if (notRead.length === 0 && options.now === undefined) return { cluster, cost };
  const hidden = Object.fromEntries(notRead.map((name) => [name, emptyObjects[name]]));
  const unread = notRead.map((resource) => ({
    resource,
    reason: { en: 'not read (said so by the caller)', zh: '没有读取（调用者如此说明）' },
  }));
  const { identity, podCoverage, source, usage } = cluster;
  const objects = { ...cluster.objects, ...hidden };
  return {
    cluster: new Cluster({
      identity,
      now: options.now ?? cluster.now,
      objects,
      unread: [...cluster.unread, ...unread],
      podCoverage,
      source,
      usage,
    }),
    cost,
  };
}

/** A whole-cluster read of the largest clusters ends within this. */
const READING_MS = 300_000;

function print(report: SpokenReport, { output, language }: DiagnoseOptions, catalogue: Catalogue): string {
  switch (output) {
    case 'json':
      return `${JSON.stringify(toJson(report), null, 2)}\n`;
    case 'markdown':
      return renderMarkdown(report, catalogue, locales[language]);
    case 'text':
      return renderText(report, catalogue, locales[language]);
    default:
      return absurd(output);
  }
}

/** The document of the contract: the whole cluster is a scope without a name. */
function toJson(report: SpokenReport): object {
  return report.scope.kind === 'Cluster' ? { ...report, scope: { kind: 'Cluster' } } : report;
}

function collectKinds(word: string, before: readonly ResourceName[] | undefined): readonly ResourceName[] {
  const resource =
    resourceNames.find((name) => name === word.toLowerCase()) ?? findResourceOfWord(word) ?? findResourceOfKind(word);
  if (resource === undefined)
    throw new InvalidArgumentError(`no such kind; the kinds are ${resourceNames.join(', ')}.`);
  return [...(before ?? []), resource];
}

function parsePicture(path: string): Picture {
  const format = /\.(svg|png)$/i.exec(path)?.[1]?.toLowerCase();
  if (format !== 'svg' && format !== 'png') throw new InvalidArgumentError('write a file that ends in .svg or .png.');
  return { path, format };
}

const RFC3339 = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/;

function parseTime(text: string): number {
  const ms = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new InvalidArgumentError('write a time like 2026-11-30T12:00:00Z.');
  return ms;
}
