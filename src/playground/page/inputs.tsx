import { type ReactElement, useId } from 'react';
import { type JsonObject, objectAt, stringAt } from '../slack/json.ts';
import { type ElementProps, Field } from './elements.tsx';

/** An input block: label, field, hint, and what is wrong with it right under the field. */
export function Input({
  block,
  error,
  ...props
}: ElementProps & { readonly block: JsonObject; readonly error: string | undefined }): ReactElement {
  const id = useId();
  const label = stringAt(objectAt(block, 'label'), 'text');
  const hint = stringAt(objectAt(block, 'hint'), 'text');
  const isOptional = block['optional'] === true;
  const isGroup = ['radio_buttons', 'checkboxes', 'multi_static_select'].includes(stringAt(props.element, 'type'));
  const described = [hint === '' ? '' : `${id}-hint`, error === undefined ? '' : `${id}-error`].join(' ').trim();
  return (
    <div className={error === undefined ? 'input' : 'input wrong'}>
      <label htmlFor={id}>
        {label}
        {isOptional && <small> (optional)</small>}
      </label>
      <Field
        {...props}
        act={block['dispatch_action'] === true ? props.act : () => undefined}
        {...(isGroup ? { name: label } : {})}
        id={id}
        describedBy={described === '' ? undefined : described}
        isInvalid={error !== undefined}
        isRequired={!isOptional}
      />
      {error !== undefined && (
        <p className="error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
      {hint !== '' && (
        <p className="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}
