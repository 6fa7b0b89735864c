import type { Command } from 'commander';
import type { Language } from '../domain/text.ts';
import { isTimeZone } from '../domain/time-zone.ts';
import { postmortem } from '../postmortem.ts';
import { type CliDeps, Exit } from './deps.ts';
import { languageOption } from './language.ts';
import { type StoredDeps, withStore } from './stored.ts';

type Deps = StoredDeps & Pick<CliDeps, 'catalogue' | 'timeZone' | 'writeFile'>;

/** `k8s-storage postmortem INCIDENT`: Markdown to stdout or into a file. */
export function addPostmortemWord(program: Command, deps: Deps): void {
  program
    .command('postmortem <incident>')
    .description('write what happened in an incident, and why, as Markdown')
    .option('--timezone <zone>', 'of all its times, such as Europe/Berlin; of this machine unless said')
    .option('--out <file>', 'write it into a file')
    .addOption(languageOption())
    .action(
      async (
        id: string,
        options: { readonly timezone?: string; readonly out?: string; readonly language: Language },
      ) => {
        const timeZone = options.timezone ?? deps.timeZone();
        if (!isTimeZone(timeZone))
          throw new Exit(2, `--timezone ${timeZone}: there is no such zone; write one like Europe/Berlin or UTC`);
        await withStore(deps, async (store) => {
          const facts = await store.incidentFacts(id);
          if (!facts) throw new Exit(2, `there is no incident ${id}; k8s-storage incidents lists them`);
          const text = postmortem(facts, {
            language: options.language,
            timeZone,
            prevention: (fault) => deps.catalogue.faults.find((one) => one.id === fault)?.prevention,
          });
          if (options.out === undefined) deps.out(text);
          else await deps.writeFile(options.out, text);
        });
      },
    );
}
