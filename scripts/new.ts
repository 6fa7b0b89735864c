/** `npm run new fault|remediation ID`: a new entry of a catalogue with its fixtures, each ready to be filled in. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { camelCase } from './gen.ts';

type Maker = (id: string) => ReadonlyMap<string, string>;

const makers: Readonly<Record<string, Maker>> = { fault: newFault, remediation: newRemediation };

function newFault(id: string): ReadonlyMap<string, string> {
  const fixture = (title: string, verdict: string) =>
    `title: ${title}\nscope: cluster\nexpect:\n  verdict: ${verdict}\nobjects: []\n`;
  return new Map([
    [
      `src/faults/${id}.ts`,
      `import { defineFault, type FindingDraft } from '../domain/fault.ts';
import { en, zh } from '../domain/text.ts';

interface Facts {
  readonly name: string;
}

/** What is true in the state, and the upstream source where that is not obvious. */
export const ${camelCase(id)} = defineFault<'${id}', Facts>({
  id: '${id}',
  severity: 'warning',
  rank: 7,
  needs: ['persistentvolumeclaims'],
  words: {
    summary: (f) => ({ en: en\`Claim \${f.name} …\`, zh: zh\`申领 \${f.name} …\` }),
    explanation: () => ({ en: '', zh: '' }),
  },
  doc: { meaning: '', impact: '', diagnosis: '', mitigation: '' },
  prevention: { en: '', zh: '' },

  *detect(_cluster, _scope): Iterable<FindingDraft<Facts>> {},
});
`,
    ],
    [`test/faults/${id}/found.first.yaml`, fixture('is found when …', 'found')],
    [`test/faults/${id}/clear.look-alike.yaml`, fixture('stays silent when …', 'clear')],
    [
      `test/faults/${id}/unknown.claims.yaml`,
      `${fixture('is unknown when claims cannot be read', 'unknown')}notRead: [persistentvolumeclaims]\n`,
    ],
  ]);
}

function newRemediation(id: string): ReadonlyMap<string, string> {
  const fixture = (title: string) => `title: ${title}\nparams: {}\nexpect: {}\nobjects: []\n`;
  return new Map([
    [
      `src/remediations/${id}.ts`,
      `import { z } from 'zod';
import { defineRemediation } from '../domain/remediation.ts';
import { en, zh } from '../domain/text.ts';

/** What it does, and why that is safe under its conditions. */
export const ${camelCase(id)} = defineRemediation({
  id: '${id}',
  risk: 'high',
  requires: [],
  params: z.object({ name: z.string(), uid: z.string() }),
  touches: [],
  needs: [],
  withinSeconds: 120,
  doc: { does: { en: '', zh: '' }, undo: { en: '', zh: '' }, caution: { en: '', zh: '' } },
  title: ({ name }) => ({ en: en\`… \${name}\`, zh: zh\`… \${name}\` }),
  scope: ({ name }) => ({ kind: 'PersistentVolume', namespace: null, name }),
  plan: () => [],
  preflight: () => [{ en: 'not written yet', zh: '尚未编写' }],
  verify: () => 'pending',
});
`,
    ],
    [`test/remediations/${id}/before.first.yaml`, fixture('plans exactly …')],
    [`test/remediations/${id}/after.first.yaml`, fixture('is verified when …')],
    [`test/remediations/${id}/refused.first.yaml`, fixture('refuses when …')],
  ]);
}

function main([kind = '', id = '']: readonly string[]): number {
  const make = makers[kind];
  if (!make || !/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id)) {
    console.error(`usage: npm run new ${Object.keys(makers).join('|')} ID   (ID in kebab-case)`);
    return 2;
  }
  const files = make(id);
  const present = [...files.keys()].filter((path) => existsSync(path));
  if (present.length > 0) {
    console.error(`${present.join(', ')} exists already; nothing was written`);
    return 2;
  }
  for (const [path, text] of files) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    console.log(`wrote ${path}`);
  }
  console.log('next: fill them in, then npm run gen');
  return 0;
}

process.exitCode = main(process.argv.slice(2));
