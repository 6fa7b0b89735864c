import { apiVersionOf, resourceTable } from './kinds.ts';

const COLLECTION_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;

interface ApiResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly group?: string;
  readonly version?: string;
}

const reviews: readonly ApiResource[] = [
  {
    name: 'selfsubjectaccessreviews',
    singularName: 'selfsubjectaccessreview',
    namespaced: false,
    kind: 'SelfSubjectAccessReview',
    verbs: ['create'],
  },
  {
    name: 'selfsubjectrulesreviews',
    singularName: 'selfsubjectrulesreview',
    namespaced: false,
    kind: 'SelfSubjectRulesReview',
    verbs: ['create'],
  },
];

function resourcesOf(group: string, version: string): readonly ApiResource[] {
  if (group === 'authorization.k8s.io') return reviews;
  return resourceTable
    .filter((entry) => entry.group === group && entry.version === version)
    .flatMap((entry): ApiResource[] => [
      {
        name: entry.resource,
        singularName: entry.singular,
        namespaced: entry.namespaced,
        kind: entry.kind,
        verbs: COLLECTION_VERBS,
        ...(entry.shortNames.length > 0 ? { shortNames: entry.shortNames } : {}),
      },
      ...entry.subresources.map((sub): ApiResource => {
        const name = `${entry.resource}/${sub}`;
        const common = { name, singularName: '', namespaced: entry.namespaced };
        if (sub === 'scale') {
          return { ...common, kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: ['get', 'patch', 'update'] };
        }
        if (sub === 'binding') return { ...common, kind: 'Binding', verbs: ['create'] };
        if (sub === 'eviction')
          return { ...common, kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] };
        if (sub === 'finalize') return { ...common, kind: entry.kind, verbs: ['update'] };
        return { ...common, kind: entry.kind, verbs: ['get', 'patch', 'update'] };
      }),
    ]);
}

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

function groups(): readonly GroupVersion[] {
  const seen = new Map<string, GroupVersion>();
  for (const entry of resourceTable) {
    if (entry.group !== '') seen.set(apiVersionOf(entry), { group: entry.group, version: entry.version });
  }
  return [...seen.values(), { group: 'authorization.k8s.io', version: 'v1' }];
}

function groupBody({ group, version }: GroupVersion): Readonly<Record<string, unknown>> {
  const one = { groupVersion: `${group}/${version}`, version };
  return { name: group, versions: [one], preferredVersion: one };
}

/** Answers a discovery path (`/version`, `/api`, `/apis/…`), or undefined when the path is none. */
export function discover(path: string, gitVersion: string): Readonly<Record<string, unknown>> | undefined {
  const [major = '1', minor = '0'] = gitVersion.replace(/^v/, '').split('.');
  if (path === '/version') return { major, minor, gitVersion, platform: 'linux/amd64', goVersion: 'none' };
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups().map(groupBody) };
  if (path === '/api/v1') return { kind: 'APIResourceList', groupVersion: 'v1', resources: resourcesOf('', 'v1') };
  if (path === '/openapi/v3') return { paths: {} };
  const match = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  if (match === null) return undefined;
  const found = groups().find((entry) => entry.group === match[1]);
  if (found === undefined) return undefined;
  if (match[2] === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(found) };
  if (match[2] !== found.version) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: `${found.group}/${found.version}`,
    resources: resourcesOf(found.group, found.version),
  };
}
