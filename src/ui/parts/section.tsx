import type { ComponentChildren } from 'preact';

/** Draws a part of a view under its own headline. */
export function Section(props: {
  /** The id of the headline, which names the part for a screen reader. */
  readonly id: string;
  readonly title: ComponentChildren;
  /** What is drawn next to the headline. */
  readonly beside?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const { id, title, beside, children } = props;
  const headline = <h2 id={id}>{title}</h2>;
  return (
    <section aria-labelledby={id}>
      {beside === undefined ? (
        headline
      ) : (
        <div class="head">
          {headline}
          {beside}
        </div>
      )}
      {children}
    </section>
  );
}
