import { defineConfig } from 'vitest/config';

/** A suite of its own, run one file after another: its tests start processes. */
export function suite(folder: string) {
  return defineConfig({
    test: {
      include: [`test/${folder}/**/*.test.ts`],
      pool: 'forks',
      maxWorkers: 1,
      fileParallelism: false,
      testTimeout: 180_000,
      hookTimeout: 180_000,
    },
  });
}
