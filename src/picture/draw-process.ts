/** The process that draws one chain: JSON of it on stdin, the PNG on stdout. Started by `painter.ts` alone. */
import { setPriority } from 'node:os';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import type { Chain } from '../domain/chain.ts';
import { toPng } from './draw.ts';

const chain: z.ZodType<Chain> = z.object({
  nodes: z.array(
    z.object({
      id: z.string(),
      kind: z.string(),
      namespace: z.string().nullable(),
      name: z.string(),
      state: z.string().nullable(),
      role: z.enum(['culprit', 'stuck', 'lost', 'other']),
      more: z.number(),
    }),
  ),
  edges: z.array(z.object({ from: z.string(), to: z.string(), says: z.string() })),
  culprit: z.string(),
});

// The bot goes first: a picture can wait.
setPriority(10);
process.stdout.write(await toPng(chain.parse(JSON.parse(await text(process.stdin)))));
