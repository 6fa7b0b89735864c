import { type ReactElement, useState } from 'react';
import { type JsonObject, objectAt, objectsAt, stringAt } from '../slack/json.ts';
import { ConfirmDialog } from './dialog.tsx';
import { Icon } from './icons.tsx';
import { Menu } from './menu.tsx';
import { useReader } from './reader.tsx';

/** One interactive element. `set` keeps a value, `act` tells the app of a click or choice. */
export type ElementProps = {
  readonly element: JsonObject;
  readonly value: unknown;
  readonly isBusy: boolean;
  set(value: unknown): void;
  act(choice?: unknown): void;
};

/** Draws an element of an `actions` block or an accessory. */
export function Element(props: ElementProps): ReactElement {
  const { element } = props;
  const [pending, setPending] = useState<{ readonly choice: unknown } | undefined>(undefined);
  const confirm = objectAt(element, 'confirm');
  function act(choice?: unknown): void {
    if (confirm['title'] === undefined) props.act(choice);
    else setPending({ choice });
  }
  return (
    <>
      <Control {...props} act={act} />
      {pending !== undefined && (
        <ConfirmDialog
          confirm={confirm}
          onConfirm={() => {
            setPending(undefined);
            props.act(pending.choice);
          }}
          onDeny={() => setPending(undefined)}
        />
      )}
    </>
  );
}

function Control(props: ElementProps): ReactElement {
  switch (props.element['type']) {
    case 'button':
    case 'workflow_button':
      return <Button {...props} />;
    case 'overflow':
      return (
        <Menu
          name="More options"
          items={optionsOf(props.element).map(({ value, text }) => ({ name: text, pick: () => props.act(value) }))}
        >
          <Icon name="more" />
        </Menu>
      );
    default:
      return <Field {...props} name={nameOf(props.element)} />;
  }
}

function Button({ element, isBusy, act }: ElementProps): ReactElement {
  const style = stringAt(element, 'style');
  const text = stringAt(objectAt(element, 'text'), 'text');
  const url = stringAt(element, 'url');
  return (
    <button
      type="button"
      className={`button ${style}`}
      aria-busy={isBusy}
      disabled={isBusy}
      // The visible text stays the accessible name; the longer label is its description.
      aria-description={stringAt(element, 'accessibility_label') || undefined}
      title={stringAt(element, 'accessibility_label') || undefined}
      onClick={() => {
        if (/^https?:/i.test(url)) window.open(url, '_blank', 'noopener,noreferrer');
        act();
      }}
    >
      {text}
    </button>
  );
}

/** What else a field of a form gets from its label. */
export type FieldProps = ElementProps & {
  readonly name?: string;
  readonly id?: string;
  readonly describedBy?: string | undefined;
  readonly isInvalid?: boolean;
  readonly isRequired?: boolean;
};

/** Draws an element that holds a value: a select, a date, a group of choices, a text. */
export function Field(props: FieldProps): ReactElement {
  const { element, value, set, act } = props;
  const reader = useReader();
  const given = value ?? startOf(element);
  const shared = {
    id: props.id,
    className: 'field',
    'aria-label': props.name,
    'aria-describedby': props.describedBy,
    'aria-invalid': props.isInvalid === true ? true : undefined,
    'aria-required': props.isRequired === true ? true : undefined,
  };
  function change(next: unknown): void {
    set(next);
    act(next);
  }
  const type = stringAt(element, 'type');
  switch (type) {
    case 'static_select':
      return <Select shared={shared} options={optionsOf(element)} element={element} value={given} change={change} />;
    case 'users_select':
      return (
        <Select
          shared={shared}
          options={reader.people.map(({ id, realName }) => ({ value: id, text: realName }))}
          element={element}
          value={given}
          change={change}
        />
      );
    case 'channels_select':
    case 'conversations_select':
      return (
        <Select
          shared={shared}
          options={reader.channels
            .filter((channel) => channel.with === undefined)
            .map(({ id, name }) => ({ value: id, text: `#${name}` }))}
          element={element}
          value={given}
          change={change}
        />
      );
    case 'radio_buttons':
    case 'checkboxes':
    case 'multi_static_select':
      return <Choices {...props} value={given} change={change} isMany={type !== 'radio_buttons'} />;
    case 'datepicker':
      return <input {...shared} type="date" value={textOf(given)} onChange={(event) => change(event.target.value)} />;
    case 'timepicker':
      return <input {...shared} type="time" value={textOf(given)} onChange={(event) => change(event.target.value)} />;
    case 'plain_text_input':
      if (element['multiline'] === true)
        return (
          <textarea
            {...shared}
            rows={3}
            value={textOf(given)}
            placeholder={placeholderOf(element)}
            onChange={(event) => set(event.target.value)}
          />
        );
      return <TextField {...props} shared={shared} type="text" value={given} />;
    case 'email_text_input':
      return <TextField {...props} shared={shared} type="email" value={given} />;
    case 'url_text_input':
      return <TextField {...props} shared={shared} type="url" value={given} />;
    case 'number_input':
      return <TextField {...props} shared={shared} type="number" value={given} />;
    default:
      return <p className="plain">The playground has no control of the type “{type}”.</p>;
  }
}

type Shared = { readonly id: string | undefined; readonly className: string };

function TextField({
  shared,
  type,
  element,
  value,
  set,
}: FieldProps & { readonly shared: Shared; readonly type: string }): ReactElement {
  return (
    <input
      {...shared}
      type={type}
      value={textOf(value)}
      placeholder={placeholderOf(element)}
      autoComplete="off"
      onChange={(event) => set(event.target.value)}
    />
  );
}

function Select({
  shared,
  options,
  element,
  value,
  change,
}: {
  readonly shared: Shared;
  readonly options: readonly Option[];
  readonly element: JsonObject;
  readonly value: unknown;
  readonly change: (value: unknown) => void;
}): ReactElement {
  return (
    <select {...shared} value={textOf(value)} onChange={(event) => change(event.target.value)}>
      <option value="" disabled>
        {placeholderOf(element) || 'Choose one'}
      </option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  );
}

function Choices(
  props: FieldProps & { readonly isMany: boolean; readonly change: (value: unknown) => void },
): ReactElement {
  const { element, value, isMany, change } = props;
  const chosen: readonly unknown[] = Array.isArray(value) ? value : [value];
  const group = `${stringAt(element, 'action_id')}-${props.id ?? ''}`;
  return (
    <fieldset id={props.id} className="choices" aria-label={props.name} aria-describedby={props.describedBy}>
      {optionsOf(element).map((option) => {
        const isChosen = chosen.includes(option.value);
        const rest = chosen.filter((each) => typeof each === 'string' && each !== option.value);
        return (
          <label key={option.value}>
            <input
              type={isMany ? 'checkbox' : 'radio'}
              name={group}
              checked={isChosen}
              onChange={() => change(isMany ? (isChosen ? rest : [...rest, option.value]) : option.value)}
            />
            <span>
              {option.text}
              {option.description !== undefined && <small>{option.description}</small>}
            </span>
          </label>
        );
      })}
    </fieldset>
  );
}

type Option = { readonly value: string; readonly text: string; readonly description?: string };

/** The options of an element or of its groups. */
function optionsOf(element: JsonObject): readonly Option[] {
  const groups = objectsAt(element, 'option_groups').flatMap((group) => objectsAt(group, 'options'));
  return [...objectsAt(element, 'options'), ...groups].map((option) => {
    const description = stringAt(objectAt(option, 'description'), 'text');
    return {
      value: stringAt(option, 'value'),
      text: stringAt(objectAt(option, 'text'), 'text'),
      ...(description === '' ? {} : { description }),
    };
  });
}

/** The value that the element starts with, as the page keeps values: options by their value. */
function startOf(element: JsonObject): unknown {
  const many = objectsAt(element, 'initial_options');
  if (many.length > 0) return many.map((option) => option['value']);
  const one = objectAt(element, 'initial_option')['value'];
  const keys = ['initial_value', 'initial_date', 'initial_time', 'initial_user', 'initial_channel'];
  return one ?? keys.map((key) => element[key]).find((value) => value !== undefined);
}

function nameOf(element: JsonObject): string {
  return placeholderOf(element) || 'Choose';
}

function placeholderOf(element: JsonObject): string {
  return stringAt(objectAt(element, 'placeholder'), 'text');
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}
