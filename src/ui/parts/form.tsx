import type { Words } from '../client/api.ts';
import { hrefWith, route } from '../client/router.ts';
import { STATES } from '../texts/frame.ts';

/** Draws fields, and reads what the user has typed into them. */

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: HTMLFormElement;
}

/** Returns the text of a field of a submitted form. Stops the browser from sending the form itself. */
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
  /** The words in the address, if the field is the search of its view. */
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
  /** Other values of the address to set with the chosen one. */
  readonly clears?: Words;
  /** True: the field is disabled. The element with the id `hosted` says why: there is a memory service. */
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
