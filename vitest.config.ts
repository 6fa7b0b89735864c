import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [
      'test/{alertmanager,cluster,browser,kill,local-slack,long}/**',
      'test/conformance/*.real.test.ts',
      'node_modules/**',
    ],
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    coverage: {
      provider: 'v8',
      include: ['src/domain/**', 'src/remediate.ts', 'src/diagnose.ts', 'src/faults/**', 'src/remediations/**'],
      thresholds: {
        'src/domain/**': { lines: 95 },
        'src/remediate.ts': { lines: 95 },
        'src/diagnose.ts': { lines: 95 },
      },
    },
  },
});
