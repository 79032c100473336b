import type { Words } from '../client/api.ts';
import { hrefWith, route } from '../client/router.ts';
import { STATES } from '../texts/frame.ts';

/** Draws fields, and reads what the user has typed into them. */

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: HTMLFormElement;
}

/** Returns the text of a field when the form is submitted, and stops the browser from sending the form. */
export function typed(event: Submitted, name: string): string {
  event.preventDefault();
  const text = new FormData(event.currentTarget).get(name);
  return typeof text === 'string' ? text.trim() : '';
}

/** Draws a field of one line, with a button. */
export function AskForm(props: {
  readonly id: string;
  readonly label: string;
  readonly button: string;
  readonly ask: (text: string) => void;
  readonly charsMax: number;
  /** If the field is the search of the view: the words of the search. */
  readonly words?: string;
}) {
  const { id, label, words } = props;
  const isSearch = words !== undefined;
  const field = {
    id,
    name: id,
    placeholder: label,
    maxLength: props.charsMax,
    defaultValue: words ?? '',
  };
  return (
    <form
      class="ask"
      role={isSearch ? 'search' : undefined}
      onSubmit={(event) => props.ask(typed(event, id))}
    >
      <label class="for-readers" for={id}>
        {label}
      </label>
      {isSearch ? <input type="search" {...field} /> : <input {...field} />}
      <button class={isSearch ? 'main' : ''} type="submit">
        {props.button}
      </button>
    </form>
  );
}

/** Draws a list from which the user chooses a value of the address. */
export function Choice(props: {
  readonly name: string;
  readonly label: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly chosen?: string;
  /** Other values of the address that must change with this one. */
  readonly clears?: Words;
  /** True if the field is disabled. Then the text about the memory service says why. */
  readonly isOff?: boolean;
}) {
  const { name, label, options, clears = {}, isOff = false } = props;
  const chosen = props.chosen ?? route.value.query.get(name) ?? '';
  return (
    <label>
      {label}
      <select
        value={chosen}
        disabled={isOff}
        aria-describedby={isOff ? 'hosted' : undefined}
        onChange={(event) => {
          location.hash = hrefWith({ [name]: event.currentTarget.value, ...clears });
        }}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value} selected={value === chosen}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function More({ show }: { readonly show: () => void }) {
  return (
    <p class="lead">
      <button type="button" onClick={show}>
        {STATES.more}
      </button>
    </p>
  );
}
