import type { ComponentChildren } from 'preact';

/** Draws a section of a view with its headline. */
export function Section(props: {
  /** The id of the headline. A screen reader names the section by it. */
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
