import type { ComponentChildren } from 'preact';
import { type Part, Swatch } from '../charts/strip.tsx';

/** The name of a table's column. A column of numbers and its name are aligned right. */
export type Head =
  | string
  /** The name of a column of numbers. */
  | { readonly number: string }
  /** A name for screen readers only. Other users understand the column without it. */
  | { readonly hidden: string };

export function Heads({ of }: { readonly of: readonly Head[] }) {
  return (
    <thead>
      <tr>
        {of.map((head) => {
          const [text = ''] = typeof head === 'string' ? [head] : Object.values(head);
          const isOf = (kind: string): boolean => typeof head !== 'string' && kind in head;
          return (
            <th key={text} scope="col" class={isOf('number') ? 'n' : undefined}>
              {isOf('hidden') ? <span class="for-readers">{text}</span> : text}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

/** Draws a table of names, each with a value. */
export function FactTable(props: {
  readonly heads?: readonly Head[];
  readonly rows: readonly (readonly [name: string, value: string])[];
}) {
  return (
    <table>
      {props.heads !== undefined && <Heads of={props.heads} />}
      <tbody>
        {props.rows.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="n wraps">{value}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Draws a number, with its name above and a text below. */
export function Figure(props: {
  readonly name: string;
  readonly figure: ComponentChildren;
  readonly text: ComponentChildren;
}) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd class="figure">{props.figure}</dd>
      <dd>{props.text}</dd>
    </div>
  );
}

/** Explains the colours of a chart. */
export function Legend(props: {
  readonly of: readonly (readonly [fill: Part['fill'], text: string])[];
}) {
  return (
    <ul class="key">
      {props.of.map(([fill, text]) => (
        <li key={fill}>
          <Swatch fill={fill} />
          {text}
        </li>
      ))}
    </ul>
  );
}
