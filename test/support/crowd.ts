/** Known states made larger than any fixture: the same trouble many times over, and names as long as Kubernetes allows. */
import type { Ref } from '../../src/domain/ref.ts';
import type { Report } from '../../src/domain/report.ts';
import type { PlannedWrite } from '../../src/domain/write.ts';

type Json = Readonly<Record<string, unknown>>;

/** What each copy has for itself; nodes, classes, drivers, leases and namespaces are common to all. */
const copied: ReadonlySet<string> = new Set([
  'Pod',
  'PersistentVolumeClaim',
  'PersistentVolume',
  'VolumeAttachment',
  'VolumeSnapshot',
  'VolumeSnapshotContent',
  'StatefulSet',
  'ReplicaSet',
  'Job',
  'Event',
]);

/** The state with `copies` more of every pod, claim, volume and what belongs to them, on the same nodes. */
export function multiplied(objects: readonly unknown[], copies: number): readonly unknown[] {
  const own = objects.filter((object): object is Json => isObject(object) && copied.has(String(object['kind'])));
  const common = new Set(
    objects.filter((object) => !own.includes(object as Json)).flatMap((object) => namesOf(object)),
  );
  const names = new Set(own.flatMap((object) => namesOf(object)).filter((name) => !common.has(name)));
  const more = Array.from({ length: copies }, (_, no) => own.map((object) => copyOf(object, names, no + 1)));
  return [...objects, ...more.flat()];
}

/** Keys whose value is the name of something that all copies share. */
const shared: ReadonlySet<string> = new Set(['namespace', 'nodeName', 'storageClassName', 'kind', 'apiVersion']);

function namesOf(object: unknown): readonly string[] {
  const found: string[] = [];
  const walk = (value: unknown, key: string, parent: string): void => {
    if (Array.isArray(value)) for (const item of value) walk(item, key, parent);
    else if (isObject(value)) for (const [name, item] of Object.entries(value)) walk(item, name, key);
    else if (typeof value === 'string' && value !== '') {
      if (key === 'uid' || key === 'volumeHandle' || /^(claim|volume|persistentVolume)Name$/.test(key))
        found.push(value);
      if (key === 'name' && /^(metadata|claimRef|ownerReferences|dataSource|volumeSnapshotRef)$/.test(parent))
        found.push(value);
    }
  };
  walk(object, '', '');
  return found;
}

/** Every letter of a copy's own names is moved by `no`, so that a name made of others is made of their new ones. */
function copyOf(object: Json, names: ReadonlySet<string>, no: number): unknown {
  const inText = [...names].filter((name) => name.length > 4).toSorted((a, b) => b.length - a.length);
  const walk = (value: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => walk(item, key));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, walk(item, name)]));
    if (typeof value !== 'string' || shared.has(key)) return value;
    if (names.has(value)) return moved(value, no);
    const part = inText.find((name) => value.includes(name));
    return part === undefined ? value : value.replaceAll(part, moved(part, no));
  };
  return walk(object, '');
}

function moved(name: string, by: number): string {
  return name.replaceAll(/[a-z]/g, (letter) => String.fromCharCode(97 + ((letter.charCodeAt(0) - 97 + by) % 26)));
}

/** Names of objects have at most so many characters, those of namespaces so many (RFC 1123 subdomain and label). */
export const LONGEST_NAME = 253;
export const LONGEST_NAMESPACE = 63;

/** The report as it is when every object and namespace that it names has the longest name that Kubernetes allows. */
export function lengthened(report: Report): Report {
  const refs: (Pick<Ref, 'namespace' | 'name'> | PlannedWrite)[] = report.findings.flatMap((finding) => [
    finding.subject,
    ...finding.involved,
    ...finding.affected,
    ...finding.evidence.map(({ object }) => object),
    ...finding.offers.flatMap(({ plan }) => plan),
  ]);
  const names = new Map<string, string>();
  for (const { name } of refs) names.set(name, padded(name, LONGEST_NAME));
  for (const { namespace } of refs) if (namespace !== null) names.set(namespace, padded(namespace, LONGEST_NAMESPACE));
  return replaced(report, names) as Report;
}

function padded(name: string, length: number): string {
  return name.length >= length ? name : `${name}${'-abcdefghi'.repeat(26).slice(0, length - name.length - 1)}z`;
}

/** A word that is also a name is one only beside a slash, a digit or a hyphen, or where it stands alone. */
function replaced(value: unknown, names: ReadonlyMap<string, string>): unknown {
  const known = [...names.keys()].filter((name) => name !== '').toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(
    `(?<![A-Za-z0-9.-])(?:${known.map((name) => name.replaceAll(/[.*+?^$|()[\]{}\\]/g, String.raw`\$&`)).join('|')})(?![A-Za-z0-9-]|\\.[A-Za-z0-9])`,
    'g',
  );
  const inText = (name: string, at: number, text: string): string => {
    const around = `${text.charAt(at - 1)}${text.charAt(at + name.length)}`;
    return /[-0-9.]/.test(name) || /["'/]/.test(around) ? (names.get(name) ?? name) : name;
  };
  const walk = (one: unknown, key: string): unknown => {
    if (typeof one === 'string') {
      if (/^(kind|apiVersion|resource|path|fault|verb|remediation|digest|uid|id)$/.test(key)) return one;
      return names.get(one) ?? one.replaceAll(pattern, inText);
    }
    if (Array.isArray(one)) return one.map((item) => walk(item, key));
    if (isObject(one)) return Object.fromEntries(Object.entries(one).map(([name, item]) => [name, walk(item, name)]));
    return one;
  };
  return walk(value, '');
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
