// The young generation of the heap starts at a megabyte and would grow to sixteen while modules load or a page of pods is
// parsed, for good: a hundred megabytes resident and no time won (`npm run bench:cluster`).
import { setFlagsFromString } from 'node:v8';

setFlagsFromString('--semi-space-growth-factor=1');
