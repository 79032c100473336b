export interface Part {
  readonly size: number;
  /** A CSS class for a colour: `f-same`, `f-gone`, `f-added` and the others of styles/drawn.css. */
  readonly fill: string;
  readonly isPale?: boolean;
}

interface StripProps {
  readonly parts: readonly Part[];
  /** The size that would fill the whole bar. */
  readonly of: number;
  /** A text for screen readers; undefined if the bar only repeats a number beside it. */
  readonly label?: string;
  readonly isThin?: boolean;
}

/** Least width of a part, in percent of the bar, so that even a small part is visible. */
const WIDTH_MIN = 0.35;

/** Draws a horizontal bar of several parts. */
export function Strip({ parts, of, label, isThin }: StripProps) {
  let x = 0;
  return (
    <svg
      class={isThin === true ? 'strip thin' : 'strip'}
      aria-hidden={label === undefined ? 'true' : undefined}
      role={label === undefined ? undefined : 'img'}
      aria-label={label}
    >
      {parts
        .filter(({ size }) => size > 0)
        .map(({ size, fill, isPale }, at) => {
          const share = (size / Math.max(1, of)) * 100;
          const width = Math.max(WIDTH_MIN, share);
          const from = x;
          x += share;
          return (
            <rect
              key={at}
              class={fill}
              x={`${Math.min(from, 100 - WIDTH_MIN).toFixed(2)}%`}
              width={`${width.toFixed(2)}%`}
              height="100%"
              fill-opacity={isPale === true ? '.7' : undefined}
            />
          );
        })}
    </svg>
  );
}

/** Draws the small coloured square of a legend. */
export function Swatch({ fill, isPale }: Pick<Part, 'fill' | 'isPale'>) {
  return (
    <svg class="sw" aria-hidden="true">
      <rect
        class={fill}
        width="100%"
        height="100%"
        fill-opacity={isPale === true ? '.7' : undefined}
      />
    </svg>
  );
}
