#!/usr/bin/env node
import { checkNode } from './check-node.mjs';

checkNode();
await import('./small-heap.mjs');
const { enableCompileCache } = await import('node:module');
enableCompileCache();
const { runCommandLine } = await import('../src/cli/main.ts');
process.exitCode = await runCommandLine(process.argv.slice(2));
