/** The head of a table. The name of a column of numbers is aligned right, like its numbers. */

export type Head =
  | string
  | { readonly number: string }
  /** For a reader of the screen: everybody else sees what the column is. */
  | { readonly hidden: string };

export function Heads({ of }: { readonly of: readonly Head[] }) {
  return (
    <thead>
      <tr>
        {of.map((head) => {
          if (typeof head === 'string') {
            return (
              <th key={head} scope="col">
                {head}
              </th>
            );
          }
          if ('number' in head) {
            return (
              <th key={head.number} scope="col" class="n">
                {head.number}
              </th>
            );
          }
          return (
            <th key={head.hidden} scope="col">
              <span class="for-readers">{head.hidden}</span>
            </th>
          );
        })}
      </tr>
    </thead>
  );
}
