import { request } from 'undici';
import { z } from 'zod';

const volume = z.object({
  driver: z.string(),
  handle: z.string(),
  name: z.string(),
  sizeBytes: z.number(),
  zone: z.string(),
  tags: z
    .record(z.string(), z.string())
    .nullish()
    .transform((tags) => tags ?? {}),
  source: z.string(),
  createdAt: z.string(),
  publishedTo: z.array(z.string()),
  stagedOn: z.array(z.string()),
  mountedOn: z.array(z.object({ nodeId: z.string(), targets: z.array(z.string()) })),
});
export type DiskVolume = z.infer<typeof volume>;

const call = z.object({
  seq: z.number(),
  at: z.string(),
  driver: z.string(),
  rpc: z.string(),
  volume: z.string(),
  name: z.string(),
  node: z.string(),
  code: z.string(),
  message: z.string(),
  milliseconds: z.number(),
});
export type DiskCall = z.infer<typeof call>;

const harm = z.object({
  seq: z.number(),
  at: z.string(),
  kind: z.enum(['two-writers', 'unpublished-while-staged', 'deleted-while-staged']),
  driver: z.string(),
  volume: z.string(),
  nodes: z.array(z.string()),
});
export type Harm = z.infer<typeof harm>;

/** A call of the driver that fails or is slow, as `POST /faults` of simcsi takes it (test/cluster/go/README.md). */
export interface DiskFault {
  readonly rpc: string;
  readonly driver?: string;
  readonly volume?: string;
  readonly node?: string;
  readonly code?: string;
  readonly message?: string;
  readonly times?: number;
  readonly delayMs?: number;
  readonly applied?: boolean;
}

export interface DiskNode {
  readonly driver: string;
  readonly name: string;
  readonly nodeId: string;
  readonly root: string;
  readonly zone?: string;
  readonly region?: string;
  readonly limit?: number;
}

/** The simulated storage system behind the driver, and the referee: what it says was really done. */
export class Disks {
  readonly url: string;
  /** Snapshots that the bot took before a deletion, by handle; simcsi itself makes them only for the driver. */
  readonly taken = new Map<string, string[]>();

  constructor(url: string) {
    this.url = url;
  }

  async volumes(): Promise<readonly DiskVolume[]> {
    return z.array(volume).parse(await this.#call('GET', '/volumes'));
  }

  async find(handle: string): Promise<DiskVolume | undefined> {
    return (await this.volumes()).find((one) => one.handle === handle);
  }

  /** A volume that was there before the cluster knew of it. */
  async seed(seeded: {
    readonly driver: string;
    readonly handle?: string;
    readonly name?: string;
    readonly sizeBytes?: number;
    readonly zone?: string;
    readonly tags?: Readonly<Record<string, string>>;
  }): Promise<DiskVolume> {
    return volume.parse(await this.#call('POST', '/volumes', seeded));
  }

  /** Loses a volume, whatever its state. */
  async lose(handle: string): Promise<void> {
    await this.#call('DELETE', `/volumes/${encodeURIComponent(handle)}`);
  }

  /** Attaches or detaches past Kubernetes. */
  async publish(handle: string, node: string): Promise<void> {
    await this.#call('POST', `/volumes/${encodeURIComponent(handle)}/publish`, { node });
  }

  async unpublish(handle: string, node: string): Promise<void> {
    await this.#call('POST', `/volumes/${encodeURIComponent(handle)}/unpublish`, { node });
  }

  /** The driver's calls in the order in which they ended, after that number. */
  async calls(after = 0): Promise<readonly DiskCall[]> {
    return z.array(call).parse(await this.#call('GET', `/calls?after=${after}`));
  }

  /** Every moment at which a volume had two writers, or lost its attachment or itself under a writer. */
  async harm(): Promise<readonly Harm[]> {
    return z.array(harm).parse(await this.#call('GET', '/harm?after=0'));
  }

  async fail(fault: DiskFault): Promise<number> {
    return z.object({ id: z.number() }).parse(await this.#call('POST', '/faults', fault)).id;
  }

  /** Removes one fault, or all, and wakes the calls that they delay. */
  async heal(id?: number): Promise<void> {
    await this.#call('DELETE', id === undefined ? '/faults' : `/faults/${id}`);
  }

  async addNode(node: DiskNode): Promise<void> {
    await this.#call('POST', '/nodes', node);
  }

  /** The machine restarted: nothing is staged or mounted on it; attachments stay. */
  async rebootNode(name: string): Promise<void> {
    await this.#call('POST', `/nodes/${name}/reboot`);
  }

  /** The machine is gone: sockets, mounts and attachments. */
  async removeNode(name: string): Promise<void> {
    await this.#call('DELETE', `/nodes/${name}`);
  }

  async unregister(name: string, driver?: string): Promise<void> {
    await this.#call('POST', `/nodes/${name}/unregister`, driver === undefined ? {} : { driver });
  }

  async register(name: string, driver?: string): Promise<void> {
    await this.#call('POST', `/nodes/${name}/register`, driver === undefined ? {} : { driver });
  }

  async limit(name: string, limit: number): Promise<void> {
    await this.#call('POST', `/nodes/${name}/limit`, { limit });
  }

  async options(options: {
    readonly driver: string;
    readonly exclusive?: boolean;
    readonly topology?: boolean;
    readonly capacity?: number;
    readonly snapshotReady?: number;
  }): Promise<void> {
    await this.#call('POST', '/options', options);
  }

  async snapshots(): Promise<readonly { readonly id: string; readonly source: string; readonly ready: boolean }[]> {
    const snapshot = z.object({ id: z.string(), source: z.string(), ready: z.boolean() });
    return z.array(snapshot).parse(await this.#call('GET', '/snapshots'));
  }

  async loseSnapshot(id: string): Promise<void> {
    await this.#call('DELETE', `/snapshots/${encodeURIComponent(id)}`);
  }

  async isHealthy(): Promise<boolean> {
    try {
      await this.#call('GET', '/healthz');
      return true;
    } catch {
      return false;
    }
  }

  async #call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const answer = await request(`${this.url}${path}`, {
      method,
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300)
      throw new Error(`the storage system answered ${method} ${path}: ${text.slice(0, 200)}`);
    return JSON.parse(text);
  }
}
