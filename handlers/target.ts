import { findResourceOfWord, kindWords, resources } from '../src/domain/resources.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import { hint, isLabel, isName, shown } from './names.ts';

export type Target =
  | { readonly kind: 'scope'; readonly scope: ScopeRef }
  | { readonly kind: 'wrong'; readonly says: string };

const EXAMPLE = 'Write for example `pvc/data-db-0 -n shop`.';
const KINDS = 'pod, pvc, pv, node, statefulset, deployment, volumeattachment, volumesnapshot, storageclass, namespace';

/**
 * What a person means by `KIND/NAME`, `KIND NAME`, `KIND/NAMESPACE/NAME` or `KIND NAMESPACE/NAME`, with or without
 * `-n`; nothing at all is the whole cluster, `-n` alone the whole namespace.
 */
export function parseTarget(words: readonly string[], namespace: string | undefined): Target {
  if (namespace !== undefined && !isLabel(namespace))
    return wrong(`\`${shown(namespace)}\` cannot be the name of a namespace.`);
  const [first, second, ...more] = words;
  if (first === undefined) return namespace === undefined ? cluster() : scope('Namespace', null, namespace);
  const parts = [...first.split('/'), ...(second === undefined ? [] : second.split('/'))];
  const [word = '', ...path] = parts;
  if (more.length > 0 || path.length > 2)
    return wrong(`I cannot tell what \`${shown(words.join(' '))}\` names. ${EXAMPLE}`);
  const resource = findResourceOfWord(word);
  if (!resource)
    return wrong(`I do not know the kind \`${shown(word)}\`.${hint(word, kindWords)} Kinds are: ${KINDS}.`);
  const { kind, namespaced } = resources[resource];
  const name = path.at(-1) ?? '';
  const inPath = path.length === 2 ? path[0] : undefined;
  if (name === '') return wrong(`Which ${kind}? ${EXAMPLE}`);
  if (!isName(name))
    return wrong(
      `\`${shown(name)}\` cannot be the name of a ${kind}: names are small letters, digits, \`-\` and \`.\`.`,
    );
  if (!namespaced) {
    if (inPath !== undefined) return wrong(`A ${kind} lives in no namespace: write \`${word}/${name}\`.`);
    return scope(kind, null, name);
  }
  if (inPath !== undefined && !isLabel(inPath)) return wrong(`\`${shown(inPath)}\` cannot be the name of a namespace.`);
  if (inPath !== undefined && namespace !== undefined && inPath !== namespace) {
    return wrong(`Two namespaces are given, \`${inPath}\` and \`${namespace}\`: leave one out.`);
  }
  const where = inPath ?? namespace;
  if (where === undefined) return wrong(`In which namespace is ${kind} \`${name}\`? Add \`-n NAMESPACE\`.`);
  return scope(kind, where, name);
}

function cluster(): Target {
  return { kind: 'scope', scope: { kind: 'Cluster' } };
}

function scope(kind: Exclude<ScopeRef['kind'], 'Cluster'>, namespace: string | null, name: string): Target {
  return { kind: 'scope', scope: { kind, namespace, name } };
}

function wrong(says: string): Target {
  return { kind: 'wrong', says };
}
