import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** Key and certificate of a server, both PEM; the certificate is its own authority. */
export interface ServerCertificate {
  readonly key: string;
  readonly cert: string;
}

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const size = body.length;
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

function sequence(...parts: readonly Uint8Array[]): Buffer {
  return der(0x30, ...parts);
}

function oid(...bytes: readonly number[]): Buffer {
  return der(0x06, Buffer.from(bytes));
}

function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(0, 14);
  return der(0x18, Buffer.from(`${text}Z`, 'ascii'));
}

function extension(id: Buffer, critical: boolean, value: Buffer): Buffer {
  return sequence(id, ...(critical ? [der(0x01, Buffer.from([0xff]))] : []), der(0x04, value));
}

function pem(label: string, body: Buffer): string {
  const lines = body.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

/**
 * Makes a self-signed certificate (X.509 v3, ECDSA P-256) for `localhost`, 127.0.0.1 and ::1, valid from a day before
 * `now` for ten years. It is needed because kubectl sends its token over TLS only
 * (k8s.io/client-go tools/clientcmd/client_config.go: auth info is read only when the transport is TLS), and Node can
 * sign but not build certificates. The key lives in this process alone.
 */
export function selfSigned(now: number): ServerCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const ecdsaWithSha256 = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));
  const commonName = sequence(oid(0x55, 0x04, 0x03), der(0x0c, Buffer.from('k8s-storage playground', 'utf8')));
  const name = sequence(der(0x31, commonName));
  const serial = randomBytes(12);
  serial[0] = 0x4a;
  const addresses = [
    der(0x82, Buffer.from('localhost', 'ascii')),
    der(0x87, Buffer.from([127, 0, 0, 1])),
    der(0x87, Buffer.from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
  ];
  const serverAuth = oid(0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01);
  const extensions = sequence(
    extension(oid(0x55, 0x1d, 0x13), true, sequence(der(0x01, Buffer.from([0xff])))),
    extension(oid(0x55, 0x1d, 0x0f), true, der(0x03, Buffer.from([0x02, 0x84]))),
    extension(oid(0x55, 0x1d, 0x25), false, sequence(serverAuth)),
    extension(oid(0x55, 0x1d, 0x11), false, sequence(...addresses)),
  );
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    ecdsaWithSha256,
    name,
    sequence(time(now - day), time(now + 3650 * day)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = sign('sha256', body, privateKey);
  const certificate = sequence(body, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: pem('CERTIFICATE', certificate),
  };
}
