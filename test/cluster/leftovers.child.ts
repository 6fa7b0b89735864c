/** Starts a bed, says which processes and which folder it has, and waits to be killed. */
import { startBed } from './bed/bed.ts';

const bed = await startBed('leftovers', process.argv[2] ?? '', { machines: [{ name: 'n1' }] });
process.stdout.write(`${JSON.stringify({ root: bed.root, pids: bed.pids() })}\n`);
setInterval(() => {}, 60_000);
