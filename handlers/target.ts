import { isNamespaceName, isObjectName } from '../src/domain/names.ts';
import { findResourceOfWord, kindWords, resources } from '../src/domain/resources.ts';
import type { ScopeRef } from '../src/domain/scope.ts';
import { en, sentences, type Text, zh } from '../src/domain/text.ts';
import { hint, shown } from './names.ts';

export type Target =
  | { readonly kind: 'scope'; readonly scope: ScopeRef }
  | { readonly kind: 'wrong'; readonly says: Text };

const EXAMPLE: Text = { en: 'Write for example `pvc/data-db-0 -n shop`.', zh: '例如写 `pvc/data-db-0 -n shop`。' };
const KINDS = 'pod, pvc, pv, node, statefulset, deployment, volumeattachment, volumesnapshot, storageclass, namespace';

/**
 * What a person means by `KIND/NAME`, `KIND NAME`, `KIND/NAMESPACE/NAME` or `KIND NAMESPACE/NAME`, with or without
 * `-n`; nothing at all is the whole cluster, `-n` alone the whole namespace.
 */
export function parseTarget(words: readonly string[], namespace: string | undefined): Target {
  if (namespace !== undefined && !isNamespaceName(namespace)) return wrong(noNamespace(namespace));
  const [first, second, ...more] = words;
  if (first === undefined) return namespace === undefined ? cluster() : scope('Namespace', null, namespace);
  const parts = [...first.split('/'), ...(second === undefined ? [] : second.split('/'))];
  const [word = '', ...path] = parts;
  if (more.length > 0 || path.length > 2) return wrong(sentences(unclear(words.join(' ')), EXAMPLE));
  const resource = findResourceOfWord(word);
  if (!resource) return wrong(unknownKind(word));
  const { kind, namespaced } = resources[resource];
  const name = path.at(-1) ?? '';
  const inPath = path.length === 2 ? path[0] : undefined;
  if (name === '') return wrong(sentences({ en: en`Which ${kind}?`, zh: zh`哪个 ${kind}？` }, EXAMPLE));
  if (!isObjectName(name))
    return wrong({
      en: en`\`${shown(name)}\` cannot be the name of a ${kind}: names are small letters, digits, \`-\` and \`.\`.`,
      zh: zh`\`${shown(name)}\` 不能作为 ${kind} 的名称：名称由小写字母、数字、\`-\` 和 \`.\` 组成。`,
    });
  if (!namespaced) {
    if (inPath !== undefined) {
      return wrong({
        en: en`A ${kind} lives in no namespace: write \`${word}/${name}\`.`,
        zh: zh`${kind} 不属于任何名字空间：请写 \`${word}/${name}\`。`,
      });
    }
    return scope(kind, null, name);
  }
  if (inPath !== undefined && !isNamespaceName(inPath)) return wrong(noNamespace(inPath));
  if (inPath !== undefined && namespace !== undefined && inPath !== namespace) {
    return wrong({
      en: en`Two namespaces are given, \`${inPath}\` and \`${namespace}\`: leave one out.`,
      zh: zh`给出了两个名字空间 \`${inPath}\` 和 \`${namespace}\`：请去掉一个。`,
    });
  }
  const where = inPath ?? namespace;
  if (where === undefined) {
    return wrong({
      en: en`In which namespace is ${kind} \`${name}\`? Add \`-n NAMESPACE\`.`,
      zh: zh`${kind} \`${name}\` 在哪个名字空间中？请加上 \`-n NAMESPACE\`。`,
    });
  }
  return scope(kind, where, name);
}

function cluster(): Target {
  return { kind: 'scope', scope: { kind: 'Cluster' } };
}

function scope(kind: Exclude<ScopeRef['kind'], 'Cluster'>, namespace: string | null, name: string): Target {
  return { kind: 'scope', scope: { kind, namespace, name } };
}

function wrong(says: Text): Target {
  return { kind: 'wrong', says };
}

function noNamespace(typed: string): Text {
  return {
    en: en`\`${shown(typed)}\` cannot be the name of a namespace.`,
    zh: zh`\`${shown(typed)}\` 不能作为名字空间的名称。`,
  };
}

function unclear(typed: string): Text {
  return {
    en: en`I cannot tell what \`${shown(typed)}\` names.`,
    zh: zh`无法判断 \`${shown(typed)}\` 指的是什么。`,
  };
}

function unknownKind(word: string): Text {
  return sentences(
    { en: en`I do not know the kind \`${shown(word)}\`.`, zh: zh`没有 \`${shown(word)}\` 这种类型。` },
    hint(word, kindWords),
    { en: en`Kinds are: ${KINDS}.`, zh: zh`可用的类型有：${KINDS}。` },
  );
}
