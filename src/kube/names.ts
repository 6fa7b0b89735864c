import { Refused } from '../domain/errors.ts';
import { isNamespaceName, isObjectName } from '../domain/names.ts';
import { type ResourceName, resources } from '../domain/resources.ts';

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
    if (!isNamespaceName(namespace))
      throw new Refused(`${JSON.stringify(namespace.slice(0, 80))} is no name of a namespace`);
    parts.push('namespaces', namespace);
  }
  if (namespaced && namespace === null && name !== undefined) throw new Refused(`a ${kind} needs a namespace`);
  parts.push(resource);
  if (name !== undefined) {
    const isName = resource === 'namespaces' ? isNamespaceName(name) : isObjectName(name);
    if (!isName) throw new Refused(`${JSON.stringify(name.slice(0, 80))} is no name that a ${kind} can have`);
    parts.push(name);
    if (subresource !== undefined) parts.push(subresource);
  }
  return `/${parts.join('/')}`;
}
