#!/usr/bin/env node
import { checkNode } from './check-node.mjs';

checkNode();
const { setFlagsFromString } = await import('node:v8');
// Loading the modules would grow the young generation for good. It may grow again once there is work.
setFlagsFromString('--semi-space-growth-factor=1');
const { enableCompileCache } = await import('node:module');
enableCompileCache();
const { main } = await import('../src/main.ts');
setFlagsFromString('--semi-space-growth-factor=2');
await main();
