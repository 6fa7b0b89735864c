/** A process that runs the embedded database of a folder until it is killed; says where on stdout. */
import { startEmbedded } from '../../src/db/embedded.ts';

const say = (line: string) => process.stdout.write(`${line}\n`);
const log = { debug() {}, info() {}, warn: (message: string) => say(`warn ${message}`), error() {} };

try {
  const database = await startEmbedded({ dataDir: process.argv[2] ?? '', log, parameters: { fsync: 'off' } });
  say(`up ${database.pid} ${database.connectionString}`);
  void database.died.then((reason) => {
    say(`died ${reason}`);
    process.exit(3);
  });
  process.once('SIGTERM', () => void database.stop().then(() => process.exit(0)));
} catch (error) {
  say(`refused ${error instanceof Error ? error.message : String(error)}`);
  process.exit(4);
}
