import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** The sidecars, each under its own account of the namespace `csi`. */
export const sidecars = [
  'csi-attacher',
  'csi-provisioner',
  'csi-resizer',
  'csi-snapshotter',
  'snapshot-controller',
] as const;
export type Sidecar = (typeof sidecars)[number];

/** The bot's accounts as `k8s-storage rbac` prints them. */
export const READER = 'system:serviceaccount:k8s-storage:k8s-storage-read';
export const ACTOR = 'system:serviceaccount:k8s-storage:k8s-storage-act';

export const ADMIN = 'admin';

interface Account {
  readonly user: string;
  readonly groups: readonly string[];
}

/** Everybody who talks to the API server, by the name of their kubeconfig. */
function accounts(nodes: readonly string[]): Readonly<Record<string, Account>> {
  const inServiceAccounts = (namespace: string) => ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return {
    [ADMIN]: { user: 'kubernetes-admin', groups: ['system:masters'] },
    kcm: { user: 'system:kube-controller-manager', groups: [] },
    scheduler: { user: 'system:kube-scheduler', groups: [] },
    ...Object.fromEntries(
      sidecars.map((name) => [name, { user: `system:serviceaccount:csi:${name}`, groups: inServiceAccounts('csi') }]),
    ),
    ...Object.fromEntries(nodes.map((name) => [name, { user: `system:node:${name}`, groups: ['system:nodes'] }])),
    read: { user: READER, groups: inServiceAccounts('k8s-storage') },
    act: { user: ACTOR, groups: inServiceAccounts('k8s-storage') },
  };
}

export interface Credentials {
  readonly tokenFile: string;
  readonly serviceAccountKey: string;
  readonly auditPolicy: string;
  token(name: string): string;
  /** Path of the kubeconfig of that account; written when the server's certificate is there. */
  kubeconfig(name: string): string;
}

/** Tokens, keys and kubeconfigs of one bed, fresh each time, all below its folder. */
export async function writeCredentials(
  folder: string,
  options: {
    readonly server: string;
    readonly caFile: string;
    readonly nodes: readonly string[];
    readonly context: string;
  },
): Promise<Credentials> {
  const all = accounts(options.nodes);
  const tokens = new Map(Object.keys(all).map((name) => [name, randomBytes(24).toString('hex')]));
  const token = (name: string) => {
    const found = tokens.get(name);
    if (found === undefined) throw new Error(`nobody is called ${name} here`);
    return found;
  };
  const kubeconfig = (name: string) => join(folder, `${name}.kubeconfig`);
  const tokenFile = join(folder, 'tokens.csv');
  const serviceAccountKey = join(folder, 'service-accounts.key');
  const auditPolicy = join(folder, 'audit-policy.yaml');
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const lines = Object.entries(all).map(
    ([name, { user, groups }]) => `${token(name)},${user},${user},"${groups.join(',')}"`,
  );
  await Promise.all([
    writeFile(tokenFile, `${lines.join('\n')}\n`, { mode: 0o600 }),
    writeFile(serviceAccountKey, privateKey.export({ type: 'pkcs1', format: 'pem' }), { mode: 0o600 }),
    writeFile(auditPolicy, stringify(policy)),
    ...Object.keys(all).map((name) =>
      writeFile(kubeconfig(name), stringify(kubeconfigOf(options, token(name))), { mode: 0o600 }),
    ),
  ]);
  return { tokenFile, serviceAccountKey, auditPolicy, token, kubeconfig };
}

function kubeconfigOf({ server, caFile, context }: { server: string; caFile: string; context: string }, token: string) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: context, cluster: { server, 'certificate-authority': caFile } }],
    users: [{ name: 'account', user: { token } }],
    contexts: [{ name: context, context: { cluster: context, user: 'account' } }],
    'current-context': context,
  };
}

/** Everything that the bot's accounts ask for, with its bodies; of the others their writes. */
const policy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'RequestResponse',
      users: [READER, ACTOR],
      verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'],
    },
    { level: 'Metadata', users: [READER, ACTOR] },
    { level: 'None', verbs: ['get', 'list', 'watch'] },
    { level: 'None', resources: [{ group: 'coordination.k8s.io', resources: ['leases'] }] },
    { level: 'None', resources: [{ group: '', resources: ['events'] }] },
    { level: 'Request' },
  ],
};
