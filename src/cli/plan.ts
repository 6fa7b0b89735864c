import type { Command } from 'commander';
import { quorumOf } from '../domain/approval.ts';
import { planIn, type SpokenPlan } from '../domain/spoken.ts';
import type { Language } from '../domain/text.ts';
import type { Locale } from '../locales/en.ts';
import { locales } from '../locales/index.ts';
import { row } from './columns.ts';
import { Exit } from './deps.ts';
import { languageOption } from './language.ts';
import { output, planJson, planLine, printJson, type StoredDeps, withStore } from './stored.ts';

/** `k8s-storage plan ID`. */
export function addPlanWord(program: Command, deps: StoredDeps): void {
  program
    .command('plan <id>')
    .description('show one plan with its votes and steps')
    .option('--output <format>', 'text or json', 'text')
    .addOption(languageOption())
    .action(async (id: string, options: { readonly output: string; readonly language: Language }) => {
      const format = output(options.output);
      const { language } = options;
      await withStore(deps, async (store) => {
        const found = await store.findPlan(id);
        if (!found) throw new Exit(2, `there is no plan ${id}; k8s-storage incident ID lists those of an incident`);
        const plan = planIn(found, language);
        if (format === 'json') printJson(deps, planJson(plan));
        else deps.out(`${textOf(plan, locales[language]).join('\n')}\n`);
      });
    });
}

function textOf(plan: SpokenPlan, t: Locale): readonly string[] {
  const { labels } = t.stored;
  const { approvals, needed } = quorumOf(plan, plan.votes);
  const because = (what: string, why: string | null) => (why === null ? what : t.stored.reason(what, why));
  return [
    planLine(plan),
    ...(plan.stateReason === null ? [] : [row(labels.because, plan.stateReason)]),
    ...(plan.successor === null ? [] : [row(labels.next, plan.successor)]),
    row(labels.incident, t.stored.inCluster(plan.incident, plan.cluster)),
    row(labels.digest, plan.digest),
    row(labels.risk, t.stored.risk(plan.risk, plan.dataLoss, plan.undo)),
    row(labels.requester, plan.requester ?? t.stored.nobody),
    row(labels.approval, t.stored.approval(approvals, needed, plan.approveBy, plan.executeBy)),
    ...plan.votes.flatMap((vote) => [
      row(labels.vote, because(`${vote.user} ${vote.decision} ${vote.at}`, vote.reason)),
      ...Object.entries(vote.proofs).map(([proof, words]) => row('', `${proof}: ${words}`)),
    ]),
    ...plan.steps.map(({ no, write, state, result }) => {
      const object = [write.resource, write.namespace, write.name].filter((part) => part !== null).join('/');
      const uid = write.uid === null ? '' : ` uid ${write.uid}`;
      return row(labels.step(no), because(`${state} ${write.verb} ${object}${uid}`, result));
    }),
  ];
}
