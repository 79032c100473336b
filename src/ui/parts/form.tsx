import type { Words } from '../client/api.ts';
import { hrefWith, route } from '../client/router.ts';
import { STATES } from '../texts/frame.ts';

/** Draws fields, and reads what the user typed into them. */

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: HTMLFormElement;
}

/** Returns what was typed into a form's field, and stops the browser from sending it. */
export function typed(event: Submitted, name: string): string {
  event.preventDefault();
  const text = new FormData(event.currentTarget).get(name);
  return typeof text === 'string' ? text.trim() : '';
}

/** Draws a field of one line with its button. */
export function AskForm(props: {
  readonly id: string;
  readonly label: string;
  readonly button: string;
  readonly ask: (text: string) => void;
  readonly charsMax: number;
  /** The words of the view's search, if the field is for that. */
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

/** Draws a list from which the user chooses one value of the address. */
export function Choice(props: {
  readonly name: string;
  readonly label: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly chosen?: string;
  /** Values of the address that another choice makes meaningless. */
  readonly clears?: Words;
  /** True if the field is disabled; the sentence about the memory service says why. */
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
