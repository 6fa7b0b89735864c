import { readFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { parseAllDocuments } from 'yaml';
import { apiVersionOf, findResourceOfKind, findResourceOfWord, resources } from '../../../src/domain/resources.ts';
import { at, isRecord, type KubeObject, listAt, type Manifest, textAt } from './objects.ts';

/** Names one object in kubectl's words: `pod shop/web-1`, `node n1`, `CSINode n1`. */
export type Target = string;

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

/** A merge patch where an object is given, a JSON patch where a list of operations is. */
export type PatchBody = Readonly<Record<string, unknown>> | readonly Readonly<Record<string, unknown>>[];

/** Kinds that scenarios make although the product reads none of them. */
const otherKinds: Readonly<Record<string, string>> = {
  ConfigMap: 'v1',
  CustomResourceDefinition: 'apiextensions.k8s.io/v1',
  PodDisruptionBudget: 'policy/v1',
  PriorityClass: 'scheduling.k8s.io/v1',
  Secret: 'v1',
  ServiceAccount: 'v1',
};

/** The API of a bed under one account; by default the administrator's, who does by hand what people do with kubectl. */
export class Api {
  readonly server: string;
  readonly #token: string;
  readonly #agent: Agent;
  readonly #kinds = new Map<string, Promise<readonly unknown[]>>();

  constructor(server: string, token: string, caFile: string) {
    this.server = server;
    this.#token = token;
    this.#agent = new Agent({ connect: { ca: readFileSync(caFile) } });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /** One request; answers other than 2xx throw an `ApiProblem` with the server's own words. */
  async call(method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const type = method !== 'PATCH' ? 'json' : Array.isArray(body) ? 'json-patch+json' : 'merge-patch+json';
    const answer = await request(`${this.server}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': `application/${type}` },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new ApiProblem(answer.statusCode, `${method} ${path}: ${saidIn(text)}`);
    return text.startsWith('{') ? JSON.parse(text) : text;
  }

  /** Makes objects, given as manifests or as YAML with several documents; gives them back as the server has them. */
  async apply(...manifests: readonly (Manifest | string)[]): Promise<readonly KubeObject[]> {
    const made: KubeObject[] = [];
    for (const manifest of manifests.flatMap(documentsOf)) {
      const { apiVersion, kind, metadata } = manifest;
      const path = await this.#pathOf(apiVersion, kind, metadata.namespace ?? null);
      made.push(toObject(await this.call('POST', path, manifest)));
    }
    return made;
  }

  async find(target: Target): Promise<KubeObject | undefined> {
    try {
      return toObject(await this.call('GET', await this.pathOf(target)));
    } catch (error) {
      if (error instanceof ApiProblem && error.status === 404) return undefined;
      throw error;
    }
  }

  async get(target: Target): Promise<KubeObject> {
    const found = await this.find(target);
    if (!found) throw new Error(`there is no ${target}`);
    return found;
  }

  /** All objects of a kind: `list('pods', 'shop')`, `list('va')`, `list('CSINode')`. */
  async list(word: string, namespace?: string): Promise<readonly KubeObject[]> {
    const { apiVersion, kind } = kindOf(word);
    const answer = await this.call('GET', await this.#pathOf(apiVersion, kind, namespace ?? null));
    return listAt(answer, 'items').map((item) => toObject({ apiVersion, kind, ...(isRecord(item) ? item : {}) }));
  }

  async patch(target: Target, body: PatchBody): Promise<KubeObject> {
    return toObject(await this.call('PATCH', await this.pathOf(target), body));
  }

  /** The status as its owner would write it. */
  async patchStatus(target: Target, body: PatchBody): Promise<KubeObject> {
    return toObject(await this.call('PATCH', `${await this.pathOf(target)}/status`, body));
  }

  async delete(target: Target, options: DeleteOptions = {}): Promise<void> {
    await this.call('DELETE', await this.pathOf(target), {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...options,
    });
  }

  /** Takes every finalizer off at once: the dangerous shortcut, by hand. */
  async nullFinalizers(target: Target): Promise<void> {
    await this.patch(target, { metadata: { finalizers: null } });
  }

  async removeFinalizer(target: Target, finalizer: string): Promise<void> {
    const index = (await this.get(target)).metadata.finalizers?.indexOf(finalizer) ?? -1;
    if (index < 0) throw new Error(`${target} has no finalizer ${finalizer}`);
    await this.patch(target, [
      { op: 'test', path: `/metadata/finalizers/${index}`, value: finalizer },
      { op: 'remove', path: `/metadata/finalizers/${index}` },
    ]);
  }

  async pathOf(target: Target): Promise<string> {
    const [word = '', place = ''] = target.split(' ');
    const { apiVersion, kind } = kindOf(word);
    const slash = place.indexOf('/');
    const namespace = slash < 0 ? null : place.slice(0, slash);
    return `${await this.#pathOf(apiVersion, kind, namespace)}/${encodeURIComponent(place.slice(slash + 1))}`;
  }

  /** From the server's own list of its kinds, so that any kind can be made, custom ones too. */
  async #pathOf(apiVersion: string, kind: string, namespace: string | null): Promise<string> {
    const base = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const find = async () =>
      (await this.#resourcesOf(base)).find(
        (entry) => at(entry, 'kind') === kind && !textAt(entry, 'name').includes('/'),
      );
    const found = (await find()) ?? (this.#kinds.delete(base) ? await find() : undefined);
    if (!found) throw new Error(`this API server serves no ${kind} of ${apiVersion}`);
    const plural = textAt(found, 'name');
    const isInNamespace = at(found, 'namespaced') === true && namespace !== null;
    return isInNamespace ? `${base}/namespaces/${namespace}/${plural}` : `${base}/${plural}`;
  }

  #resourcesOf(base: string): Promise<readonly unknown[]> {
    const known = this.#kinds.get(base);
    if (known) return known;
    const asked = this.call('GET', base).then((answer) => listAt(answer, 'resources'));
    asked.catch(() => this.#kinds.delete(base));
    this.#kinds.set(base, asked);
    return asked;
  }
}

function documentsOf(manifest: Manifest | string): readonly Manifest[] {
  if (typeof manifest !== 'string') return [manifest];
  return parseAllDocuments(manifest).map((document) => {
    const read: unknown = document.toJS();
    if (!isManifest(read)) throw new Error(`this is no Kubernetes object:\n${manifest}`);
    return read;
  });
}

function isManifest(value: unknown): value is Manifest {
  return (
    isRecord(value) && textAt(value, 'apiVersion') !== '' && textAt(value, 'kind') !== '' && isRecord(value['metadata'])
  );
}

function kindOf(word: string): { readonly apiVersion: string; readonly kind: string } {
  const resource = findResourceOfWord(word) ?? findResourceOfKind(word);
  if (resource) return { apiVersion: apiVersionOf(resource), kind: resources[resource].kind };
  const apiVersion = otherKinds[word];
  if (apiVersion === undefined) throw new Error(`no kind is known by the word ${word}`);
  return { apiVersion, kind: word };
}

function toObject(value: unknown): KubeObject {
  if (!isObject(value)) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value;
}

function isObject(value: unknown): value is KubeObject {
  return isRecord(value) && textAt(value, 'metadata.name') !== '';
}

function saidIn(body: string): string {
  if (!body.startsWith('{')) return body.slice(0, 200);
  return textAt(JSON.parse(body), 'message') || body.slice(0, 200);
}
