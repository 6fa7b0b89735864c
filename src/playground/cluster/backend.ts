import type { SimClock } from './time.ts';
import { rfc3339 } from './time.ts';

/** gRPC codes that the simulated driver answers with. */
export type GrpcCode =
  | 'NotFound'
  | 'FailedPrecondition'
  | 'Internal'
  | 'ResourceExhausted'
  | 'InvalidArgument'
  | 'PermissionDenied';

/** A refusal of the backend; the message is what sidecars pass on word for word. */
export class BackendError extends Error {
  readonly code: GrpcCode;

  constructor(code: GrpcCode, description: string) {
    super(`rpc error: code = ${code} desc = ${description}`);
    this.name = 'BackendError';
    this.code = code;
  }
}

/** A volume as the backend keeps it. */
export interface BackendVolume {
  readonly handle: string;
  readonly name: string;
  readonly driver: string;
  readonly clusterId: string;
  readonly createdAt: string;
  readonly zone: string;
  readonly sizeBytes: number;
  readonly attachedTo: readonly string[];
  /** Times of the inventories that saw it: first and last. */
  readonly seenAt: readonly [string, string];
}

/** A snapshot as the backend keeps it: it outlives its volume. */
export interface BackendSnapshot {
  readonly name: string;
  readonly source: string;
  readonly createdAt: string;
}

/** What an inventory reports of one volume. */
export type InventoryItem = Pick<
  BackendVolume,
  'handle' | 'driver' | 'clusterId' | 'createdAt' | 'attachedTo' | 'seenAt'
> & { readonly snapshots: readonly { readonly name: string; readonly ready: boolean }[] };

/** The CSI calls that reach the backend. */
export type BackendCall =
  | 'CreateSnapshot'
  | 'CreateVolume'
  | 'DeleteVolume'
  | 'ControllerExpandVolume'
  | 'ControllerPublishVolume'
  | 'ControllerUnpublishVolume';

/** One call in the backend's log. */
export interface LoggedCall {
  readonly at: string;
  readonly call: BackendCall;
  readonly handle: string;
  readonly node: string;
  readonly error: string;
}

interface Failure {
  readonly call: BackendCall;
  readonly handle: string | undefined;
  readonly error: BackendError;
}

const LOG_LIMIT = 5000;

/**
 * The simulated disk backend behind the CSI driver. It enforces what the CSI specification asks of exclusive volumes:
 * a volume is published to one node at most, and is not deleted while published.
 */
export class Backend {
  readonly #clock: SimClock;
  readonly #volumes = new Map<string, BackendVolume>();
  readonly #snapshots = new Map<string, BackendSnapshot>();
  readonly #log: LoggedCall[] = [];
  readonly #written = new Map<string, { readonly at: number; readonly bytes: number; readonly perHour: number }>();
  #failures: Failure[] = [];
  #serial = 0;

  constructor(clock: SimClock) {
    this.#clock = clock;
  }

  /** Puts a volume there without a call: a stored inventory, or a volume of a past state. */
  load(
    volume: Omit<BackendVolume, 'seenAt' | 'attachedTo'> & Partial<Pick<BackendVolume, 'seenAt' | 'attachedTo'>>,
  ): void {
    const now = rfc3339(this.#clock.now());
    this.#volumes.set(volume.handle, { attachedTo: [], seenAt: [now, now], ...volume });
  }

  /** Loses a volume, whatever its state, past the driver: somebody did it in the storage system itself. */
  lose(handle: string): void {
    this.#volumes.delete(handle);
  }

  /** Forgets every volume, failure and call. */
  reset(): void {
    this.#volumes.clear();
    this.#snapshots.clear();
    this.#written.clear();
    this.#log.length = 0;
    this.#failures = [];
    this.#serial = 0;
  }

  /** What a workload has written to a volume, and how much more each hour. */
  write(handle: string, written: { readonly bytes: number; readonly perHour: number }): void {
    this.#written.set(handle, { at: this.#clock.now(), ...written });
  }

  /** How much of a volume is written at a moment, in bytes; undefined where nobody counts. It never overflows. */
  writtenAt(handle: string, at: number): number | undefined {
    const written = this.#written.get(handle);
    const size = this.#volumes.get(handle)?.sizeBytes;
    if (written === undefined || size === undefined) return undefined;
    return Math.min(size, Math.max(0, written.bytes + (written.perHour * (at - written.at)) / 3_600_000));
  }

  /** Makes a call fail for one handle (or all) until `heal` is called. */
  fail(call: BackendCall, code: GrpcCode, description: string, handle?: string): void {
    this.#failures.push({ call, handle, error: new BackendError(code, description) });
  }

  /** Ends the failures of a call, or all. */
  heal(call?: BackendCall): void {
    this.#failures = call === undefined ? [] : this.#failures.filter((failure) => failure.call !== call);
  }

  /** The calls so far, oldest first. */
  calls(call?: BackendCall): readonly LoggedCall[] {
    return call === undefined ? [...this.#log] : this.#log.filter((entry) => entry.call === call);
  }

  /** One volume, or undefined. */
  get(handle: string): BackendVolume | undefined {
    return this.#volumes.get(handle);
  }

  /** All volumes, by handle. */
  volumes(): readonly BackendVolume[] {
    return [...this.#volumes.values()].sort((a, b) => a.handle.localeCompare(b.handle));
  }

  /** Takes an inventory now: what a `ListVolumes` with tags would report. Looking is what makes `seenAt` grow. */
  inventory(): readonly InventoryItem[] {
    const now = rfc3339(this.#clock.now());
    for (const volume of this.#volumes.values()) {
      this.#volumes.set(volume.handle, { ...volume, seenAt: [volume.seenAt[0], now] });
    }
    return this.volumes().map((volume) => this.#itemOf(volume));
  }

  /** What the backend says of one volume now; that is no inventory. */
  item(handle: string): InventoryItem | undefined {
    const volume = this.#volumes.get(handle);
    return volume && this.#itemOf(volume);
  }

  #itemOf({ handle, driver, clusterId, createdAt, attachedTo, seenAt }: BackendVolume): InventoryItem {
    const snapshots = this.snapshots().filter(({ source }) => source === handle);
    return {
      handle,
      driver,
      clusterId,
      createdAt,
      attachedTo,
      seenAt,
      snapshots: snapshots.map(({ name }) => ({ name, ready: true })),
    };
  }

  /** CreateVolume: idempotent by name. */
  create(request: {
    readonly name: string;
    readonly driver: string;
    readonly clusterId: string;
    readonly zone: string;
    readonly sizeBytes: number;
  }): BackendVolume {
    return this.#call('CreateVolume', request.name, '', () => {
      const existing = [...this.#volumes.values()].find((volume) => volume.name === request.name);
      if (existing !== undefined) return existing;
      this.#serial += 1;
      const now = rfc3339(this.#clock.now());
      const handle = `vol-${String(this.#serial).padStart(4, '0')}-${request.name.replace(/^pvc-/, '').slice(0, 8)}`;
      const made: BackendVolume = { ...request, handle, createdAt: now, attachedTo: [], seenAt: [now, now] };
      this.#volumes.set(handle, made);
      return made;
    });
  }

  /** All snapshots, also of volumes that are gone. */
  snapshots(): readonly BackendSnapshot[] {
    return [...this.#snapshots.values()];
  }

  /** CreateSnapshot: idempotent by name and source. */
  snapshot(handle: string, name: string): void {
    this.#call('CreateSnapshot', handle, '', () => {
      if (!this.#volumes.has(handle)) throw new BackendError('NotFound', `volume ${handle} not found`);
      const key = `${handle}\n${name}`;
      if (!this.#snapshots.has(key))
        this.#snapshots.set(key, { name, source: handle, createdAt: rfc3339(this.#clock.now()) });
    });
  }

  /** DeleteVolume: no error when it is gone already; refused while published. */
  delete(handle: string): void {
    this.#call('DeleteVolume', handle, '', () => {
      const volume = this.#volumes.get(handle);
      if (volume === undefined) return;
      const [node] = volume.attachedTo;
      if (node !== undefined)
        throw new BackendError('FailedPrecondition', `volume ${handle} is still attached to node ${node}`);
      this.#volumes.delete(handle);
    });
  }

  /** ControllerExpandVolume: a volume is never made smaller. */
  expand(handle: string, sizeBytes: number): void {
    this.#call('ControllerExpandVolume', handle, '', () => {
      const volume = this.#volumes.get(handle);
      if (volume === undefined) throw new BackendError('NotFound', `volume ${handle} not found`);
      this.#volumes.set(handle, { ...volume, sizeBytes: Math.max(volume.sizeBytes, sizeBytes) });
    });
  }

  /** ControllerPublishVolume: idempotent for the same node, FAILED_PRECONDITION when published elsewhere. */
  publish(handle: string, node: string): void {
    this.#call('ControllerPublishVolume', handle, node, () => {
      const volume = this.#volumes.get(handle);
      if (volume === undefined) throw new BackendError('NotFound', `volume ${handle} not found`);
      const other = volume.attachedTo.find((id) => id !== node);
      if (other !== undefined)
        throw new BackendError('FailedPrecondition', `volume ${handle} is already attached to node ${other}`);
      this.#volumes.set(handle, { ...volume, attachedTo: [node] });
    });
  }

  /** ControllerUnpublishVolume: no error when nothing is published. */
  unpublish(handle: string, node: string): void {
    this.#call('ControllerUnpublishVolume', handle, node, () => {
      const volume = this.#volumes.get(handle);
      if (volume === undefined) return;
      this.#volumes.set(handle, { ...volume, attachedTo: volume.attachedTo.filter((id) => id !== node) });
    });
  }

  #call<T>(call: BackendCall, handle: string, node: string, run: () => T): T {
    let error = '';
    try {
      const failure = this.#failures.find((f) => f.call === call && (f.handle === undefined || f.handle === handle));
      if (failure !== undefined) throw failure.error;
      return run();
    } catch (thrown) {
      error = thrown instanceof Error ? thrown.message : String(thrown);
      throw thrown;
    } finally {
      this.#log.push({ at: rfc3339(this.#clock.now()), call, handle, node, error });
      if (this.#log.length > LOG_LIMIT) this.#log.splice(0, LOG_LIMIT / 10);
    }
  }
}
