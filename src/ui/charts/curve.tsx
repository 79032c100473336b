export interface CurvePoint {
  readonly paid: number;
  readonly direct: number;
}

const WIDTH = 300;
const HEIGHT = 74;
const INSET = 4;
/** Bound on the drawn points. More would not be visible. */
const POINTS_MAX = 150;

/** Draws two growing costs as curves, the paid and the direct price, with the area between them. */
export function Curve({
  points,
  label,
}: {
  readonly points: readonly CurvePoint[];
  readonly label: string;
}) {
  const step = Math.ceil(points.length / POINTS_MAX);
  const shown = points.filter((_, at) => at % step === 0 || at === points.length - 1);
  const most = Math.max(1, ...shown.map(({ paid, direct }) => Math.max(paid, direct)));
  const x = (at: number): string => ((at / Math.max(1, shown.length - 1)) * WIDTH).toFixed(1);
  const y = (value: number): string =>
    (HEIGHT - INSET - (value / most) * (HEIGHT - 2 * INSET)).toFixed(1);
  const direct = shown.map((point, at) => `${x(at)},${y(point.direct)}`);
  const paid = shown.map((point, at) => `${x(at)},${y(point.paid)}`);
  return (
    <svg
      class="curve"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <polygon class="between" points={[...direct, ...paid.toReversed()].join(' ')} />
      <polyline class="direct" points={direct.join(' ')} />
      <polyline class="paid" points={paid.join(' ')} />
    </svg>
  );
}
