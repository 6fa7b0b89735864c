import { Refused } from '../domain/errors.ts';
import { isNamespaceName, isObjectName } from '../domain/names.ts';
import { type ResourceName, resources } from '../domain/resources.ts';
import { en, zh } from '../domain/text.ts';

/**
 * The path of one object, of a subresource, or of a collection (`name` undefined).
 *
 * Names are checked before they reach a URL, because `''`, `.` and `..` turn one request into another: a DELETE of `..`
 * in a namespace is the DELETE of that namespace. Throws `Refused`.
 */
export function pathOf(
  resource: ResourceName,
  namespace: string | null,
  name: string | undefined,
  subresource?: string,
): string {
  const { group, version, namespaced, kind } = resources[resource];
  const parts = group === '' ? ['api', version] : ['apis', group, version];
  if (namespaced && namespace !== null) {
    if (!isNamespaceName(namespace)) throw noNamespaceName(namespace);
    parts.push('namespaces', namespace);
  }
  if (namespaced && namespace === null && name !== undefined)
    throw new Refused({ en: en`a ${kind} needs a namespace`, zh: zh`${kind} 需要名字空间` });
  parts.push(resource);
  if (name !== undefined) {
    const isName = resource === 'namespaces' ? isNamespaceName(name) : isObjectName(name);
    if (!isName) throw noNameFor(kind, name);
    parts.push(name);
    if (subresource !== undefined) parts.push(subresource);
  }
  return `/${parts.join('/')}`;
}

export function noNamespaceName(text: string): Refused {
  const said = quoted(text);
  return new Refused({ en: en`${said} is no name of a namespace`, zh: zh`${said} 不是名字空间的名称` });
}

export function noNameFor(kind: string, text: string): Refused {
  const said = quoted(text);
  return new Refused({
    en: en`${said} is no name that a ${kind} can have`,
    zh: zh`${said} 不是 ${kind} 可以使用的名称`,
  });
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
