import { spawn } from 'node:child_process';
import { buffer, text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { Transient } from '../domain/errors.ts';
import { en, zh } from '../domain/text.ts';
import type { Painter } from '../ports.ts';

/** A cold start on a busy machine included. */
const DRAWING_MS = 30_000;

/**
 * Draws in a process of its own that ends with the picture: the two wasm programs would take some 100 MB of the bot for
 * good, and a second of its event loop for each picture.
 */
export function createPainter(timeoutMs = DRAWING_MS): Painter {
  return {
    async png(chain, signal) {
      const child = spawn(process.execPath, [fileURLToPath(new URL('./draw-process.ts', import.meta.url))], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: {},
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      const ended = new Promise<number | null>((resolve, reject) => {
        child.once('error', reject);
        child.once('close', resolve);
      });
      // A child that has ended already takes nothing more; its exit code tells of it.
      child.stdin.on('error', () => {});
      child.stdin.end(JSON.stringify(chain));
      try {
        const [code, png, says] = await Promise.all([ended, buffer(child.stdout), text(child.stderr)]);
        if (code === 0) return png;
        const why = says.trim().slice(0, 300) || `exit code ${code}`;
        throw new Transient({ en: en`the picture could not be drawn: ${why}`, zh: zh`无法绘制图片：${why}` });
      } catch (error) {
        if (error instanceof Transient) throw error;
        throw new Transient({ en: 'the picture could not be drawn', zh: '无法绘制图片' }, { cause: error });
      }
    },
  };
}
