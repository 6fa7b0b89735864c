import { defineConfig } from 'vitest/config';

/** Scenarios on real control planes, two at a time in one process; the programs are built before. */
export default defineConfig({
  test: {
    include: ['test/cluster/**/*.test.ts', 'test/conformance/*.real.test.ts'],
    globalSetup: ['test/cluster/setup.ts'],
    pool: 'forks',
    maxWorkers: 1,
    fileParallelism: false,
    maxConcurrency: 2,
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
