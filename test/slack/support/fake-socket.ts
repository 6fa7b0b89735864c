import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { Duplex } from 'node:stream';

/** A Socket Mode server on loopback: just enough of RFC 6455 for text frames, and Slack's hello and envelopes. */
export interface FakeSocket {
  readonly url: string;
  /** Acknowledgements as they came. */
  readonly acks: readonly { readonly envelope_id: string; readonly payload?: unknown }[];
  readonly connections: number;
  send(envelope: Readonly<Record<string, unknown>>): void;
  /** Resolves when so many connections were made. */
  untilConnected(times: number): Promise<void>;
  untilAcked(times: number): Promise<void>;
  /** Cuts every connection without a word. */
  cut(): void;
  close(): Promise<void>;
}

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

export async function startFakeSocket(): Promise<FakeSocket> {
  const acks: { envelope_id: string; payload?: unknown }[] = [];
  const open = new Set<Duplex>();
  const waiting: (() => void)[] = [];
  let connections = 0;
  const server: Server = createServer();
  const wake = () => {
    for (const one of waiting.splice(0)) one();
  };

  server.on('upgrade', (req, socket: Duplex) => {
    const accept = createHash('sha1').update(`${req.headers['sec-websocket-key']}${GUID}`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    open.add(socket);
    connections += 1;
    let buffer = Buffer.alloc(0);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      buffer = Buffer.concat([buffer, chunk]);
      for (let frame = readFrame(buffer); frame; frame = readFrame(buffer)) {
        buffer = buffer.subarray(frame.size);
        if (frame.opcode === 8) socket.end(writeFrame(8, frame.data));
        if (frame.opcode === 9) socket.write(writeFrame(10, frame.data));
        if (frame.opcode === 1) acks.push(JSON.parse(frame.data.toString('utf8')) as { envelope_id: string });
      }
      wake();
    });
    socket.write(writeFrame(1, Buffer.from(JSON.stringify({ type: 'hello', num_connections: 1 }))));
    wake();
  });

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const until = async (holds: () => boolean) => {
    while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
  };
  return {
    url: `ws://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}/link`,
    acks,
    get connections() {
      return connections;
    },
    send(envelope) {
      for (const socket of open) socket.write(writeFrame(1, Buffer.from(JSON.stringify(envelope))));
    },
    untilConnected: (times) => until(() => connections >= times),
    untilAcked: (times) => until(() => acks.length >= times),
    cut() {
      for (const socket of open) socket.destroy();
    },
    async close() {
      for (const socket of open) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The first whole frame of a client, unmasked; undefined while it has not come whole. */
function readFrame(
  buffer: Buffer,
): { readonly opcode: number; readonly data: Buffer; readonly size: number } | undefined {
  if (buffer.length < 2) return undefined;
  const short = buffer.readUInt8(1) & 0x7f;
  const extra = short === 126 ? 2 : short === 127 ? 8 : 0;
  const start = 2 + extra + 4;
  if (buffer.length < start) return undefined;
  const length = short === 126 ? buffer.readUInt16BE(2) : short === 127 ? Number(buffer.readBigUInt64BE(2)) : short;
  if (buffer.length < start + length) return undefined;
  const mask = buffer.subarray(start - 4, start);
  const data = Buffer.from(buffer.subarray(start, start + length).map((byte, at) => byte ^ (mask[at % 4] ?? 0)));
  return { opcode: buffer.readUInt8(0) & 0x0f, data, size: start + length };
}

function writeFrame(opcode: number, data: Buffer): Buffer {
  const head =
    data.length < 126
      ? Buffer.of(0x80 | opcode, data.length)
      : Buffer.of(0x80 | opcode, 126, data.length >> 8, data.length & 0xff);
  return Buffer.concat([head, data]);
}
