import { Command } from 'commander';
import { addAuditWord } from './audit.ts';
import type { CliDeps } from './deps.ts';
import { addDiagnoseWord } from './diagnose.ts';
import { addDoctorWord } from './doctor.ts';
import { addIncidentWord } from './incident.ts';
import { addIncidentsWord } from './incidents.ts';
import { addPlanWord } from './plan.ts';
import { addPostmortemWord } from './postmortem.ts';
import { addRbacWord } from './rbac.ts';
import { addSlackManifestWord } from './slack-manifest.ts';
import { addSnapshotWord } from './snapshot.ts';

/** Every word of the command line, in the order of its help. */
const words: readonly ((program: Command, deps: CliDeps) => void)[] = [
  addDiagnoseWord,
  addSnapshotWord,
  addIncidentsWord,
  addIncidentWord,
  addPlanWord,
  addPostmortemWord,
  addAuditWord,
  addRbacWord,
  addSlackManifestWord,
  addDoctorWord,
];

/**
 * The `k8s-storage` command. Words end by returning (exit code 0) or by throwing: `Exit` with a code of the contract,
 * commander's own error for wrong usage, or whatever went wrong, which the caller turns into exit code 2.
 */
export function buildProgram(deps: CliDeps): Command {
  const program = new Command('k8s-storage');
  program
    .description('Diagnoses Kubernetes storage: the cause first, what proves it, what can be done.')
    .exitOverride()
    .configureOutput({ writeOut: (text) => deps.out(text), writeErr: (text) => deps.err(text) })
    .showHelpAfterError('(k8s-storage --help says what there is)');
  for (const addWord of words) addWord(program, deps);
  return program;
}
