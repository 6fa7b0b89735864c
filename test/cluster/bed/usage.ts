import { bytesOf } from '../../../src/domain/claim.ts';
import { type ClaimUsage, PACE_MS } from '../../../src/domain/usage.ts';
import type { UsageSource } from '../../../src/ports.ts';
import type { Api } from './api.ts';
import { textAt } from './objects.ts';

/**
 * How full claims are, in the place of the kubelets' numbers: the simulated disks hold no data. What is written stays the
 * same; how much room there is, the real claim says.
 */
export class Fillings implements UsageSource {
  readonly #api: () => Api;
  readonly #bytes = new Map<string, number>();

  constructor(api: () => Api) {
    this.#api = api;
  }

  /** From here on so much is written to `shop/data`. */
  fill(path: string, bytes: number): void {
    this.#bytes.set(path, bytes);
  }

  async read({ now }: Parameters<UsageSource['read']>[0]): ReturnType<UsageSource['read']> {
    const claims: ClaimUsage[] = [];
    for (const [path, written] of this.#bytes) {
      const claim = await this.#api().find(`pvc ${path}`);
      const capacity = bytesOf(textAt(claim, 'status.capacity.storage'));
      if (capacity === undefined) continue;
      const free = Math.max(0, 1 - written / capacity);
      const history = [now - PACE_MS, now].map((at) => ({ at, free }));
      const [namespace = '', name = ''] = path.split('/');
      claims.push({ namespace, name, at: now, source: 'prometheus', bytes: { free, capacity, history } });
    }
    return { claims, requests: 1, bytes: 0 };
  }
}
