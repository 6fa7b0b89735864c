import type { Command } from 'commander';
import { faultPoints } from '../fault-points.ts';
import { type CliDeps, Exit } from './deps.ts';

/** `doctor --fault-points`: the named points of the step protocol that tests may use. */
export function addDoctorWord(program: Command, deps: CliDeps): void {
  program
    .command('doctor')
    .description('lists the named points of the step protocol, for tests')
    .option('--fault-points', 'every point that K8S_STORAGE_FAULTS may name')
    .action((options: { readonly faultPoints?: boolean }) => {
      if (!options.faultPoints) throw new Exit(2, 'doctor checks nothing yet; say doctor --fault-points');
      deps.out(`${faultPoints.join('\n')}\n`);
    });
}
