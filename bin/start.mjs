#!/usr/bin/env node
import { checkNode } from './check-node.mjs';

checkNode();
await import('./small-heap.mjs');
const { enableCompileCache } = await import('node:module');
enableCompileCache();
const { main } = await import('../src/main.ts');
await main();
