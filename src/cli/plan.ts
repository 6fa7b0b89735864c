import type { Command } from 'commander';
import { quorumOf } from '../domain/approval.ts';
import { planIn, type SpokenPlan } from '../domain/spoken.ts';
import { Exit } from './deps.ts';
import { output, planJson, planLine, printJson, type StoredDeps, withStore } from './stored.ts';

/** `k8s-storage plan ID`. */
export function addPlanWord(program: Command, deps: StoredDeps): void {
  program
    .command('plan <id>')
    .description('show one plan with its votes and steps')
    .option('--output <format>', 'text or json', 'text')
    .action(async (id: string, options: { readonly output: string }) => {
      const format = output(options.output);
      await withStore(deps, async (store) => {
        const found = await store.findPlan(id);
        if (!found) throw new Exit(2, `there is no plan ${id}; k8s-storage incident ID lists those of an incident`);
        const plan = planIn(found, 'en');
        if (format === 'json') printJson(deps, planJson(plan));
        else deps.out(`${textOf(plan).join('\n')}\n`);
      });
    });
}

function textOf(plan: SpokenPlan): readonly string[] {
  const { approvals, needed } = quorumOf(plan, plan.votes);
  return [
    planLine(plan),
    ...(plan.stateReason === null ? [] : [`because    ${plan.stateReason}`]),
    ...(plan.successor === null ? [] : [`next       ${plan.successor}`]),
    `incident   ${plan.incident} in cluster ${plan.cluster}`,
    `digest     ${plan.digest}`,
    `risk       ${plan.risk}, loss of data: ${plan.dataLoss}; undo: ${plan.undo}`,
    `requester  ${plan.requester ?? 'nobody'}`,
    `approval   ${approvals} of ${needed}, until ${plan.approveBy}${plan.executeBy === null ? '' : `; start until ${plan.executeBy}`}`,
    ...plan.votes.flatMap((vote) => [
      `vote       ${vote.user} ${vote.decision} ${vote.at}${vote.reason === null ? '' : `: ${vote.reason}`}`,
      ...Object.entries(vote.proofs).map(([proof, words]) => `           ${proof}: ${words}`),
    ]),
    ...plan.steps.map(({ no, write, state, result }) => {
      const object = [write.resource, write.namespace, write.name].filter((part) => part !== null).join('/');
      return `step ${no}     ${state} ${write.verb} ${object}${write.uid === null ? '' : ` uid ${write.uid}`}${result === null ? '' : `: ${result}`}`;
    }),
  ];
}
