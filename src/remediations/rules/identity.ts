import { Refused } from '../../domain/errors.ts';
import { en, type Word, zh } from '../../domain/text.ts';

/**
 * The object that a plan was made for, by name and uid. Throws `Refused` when it is gone or was replaced by another one of
 * that name. `kind` is what people call it.
 */
export function sameAsPlanned<T extends { readonly uid: string }>(
  kind: Word,
  planned: { readonly namespace?: string; readonly name: string; readonly uid: string },
  object: T | undefined,
): T {
  const name = planned.namespace === undefined ? planned.name : `${planned.namespace}/${planned.name}`;
  if (!object) throw new Refused({ en: en`${kind} ${name} does not exist any more`, zh: zh`${kind} ${name} 已不存在` });
  if (object.uid !== planned.uid)
    throw new Refused({
      en: en`${kind} ${name} was replaced by another one of that name`,
      zh: zh`${kind} ${name} 已被另一个同名的对象替换`,
    });
  return object;
}
