import type { Catalogue } from '../diagnose.ts';
import type { Chain } from '../domain/chain.ts';
import type { Cluster, ClusterInput } from '../domain/cluster.ts';
import type { ReadCost } from '../domain/report.ts';
import type { ResourceName } from '../domain/resources.ts';
import { textIn } from '../domain/text.ts';
import type { ClusterReader, Store } from '../ports.ts';

/**
 * What the words of the command line get from the composition root. Edges are opened on demand, so that a word that
 * needs no cluster and no database loads neither.
 */
export interface CliDeps {
  /** Data goes to stdout, as it is: whoever writes a line ends it. */
  out(text: string): void;
  /** Everything else goes to stderr, as it is. */
  err(text: string): void;
  /** Milliseconds since 1970. */
  now(): number;
  /** IANA name of the time zone of this machine. */
  timeZone(): string;
  /** Every fault and remediation there is. */
  readonly catalogue: Catalogue;
  /** Saved objects as a cluster; `notes` say what was passed over, one line each. */
  readFiles(
    paths: readonly string[],
    options: { readonly notRead: readonly ResourceName[]; readonly now: number | undefined },
  ): Promise<{ readonly input: ClusterInput; readonly cost: ReadCost; readonly notes: readonly string[] }>;
  /** `onRaw` gets every object as the API server sent it. */
  openReader(
    context: string | undefined,
    onRaw?: (resource: ResourceName, raw: unknown) => void,
  ): Promise<ClusterReader>;
  /** Writes a file that only its owner may read, replacing what was there. */
  writeFile(path: string, content: string | Uint8Array): Promise<void>;
  /** Draws a chain, as SVG text or as the bytes of a PNG. */
  draw(chain: Chain, format: 'svg' | 'png'): Promise<string | Uint8Array>;
  /** The database of `DATABASE_URL` or of `DATA_DIR`, whether the bot runs or not. The caller closes it. */
  openStore(): Promise<Store>;
}

/** Ends a word with an exit code of the contract; the message, if any, goes to stderr. */
export class Exit extends Error {
  override readonly name = 'Exit';
  readonly code: number;

  constructor(code: number, message = '') {
    super(message);
    this.code = code;
  }
}

/** Usage that could not be read costs nothing else, so it is no answer of the diagnosis; whoever waits for it is told. */
export function noteUsage(cluster: Cluster, deps: Pick<CliDeps, 'err'>): void {
  const { unread } = cluster.usage;
  if (unread !== undefined) deps.err(`note: usage was not read: ${textIn(unread, 'en')}\n`);
}
