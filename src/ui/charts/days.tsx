export interface DayBar {
  readonly key: string;
  readonly paid: number;
  readonly direct: number;
  readonly href: string;
  /** The text below the bar, such as "Thu 19". */
  readonly name: string;
  /** The text above the bar, such as "−24 %". */
  readonly say: string;
  /** A complete sentence for screen readers. */
  readonly label: string;
}

const WIDTH = 1000;
const HEIGHT = 300;
const LEFT = 48;
const TOP = 26;
const BASE = 270;
const RULES = 4;

/**
 * Draws a bar for each day. The filled part is the lower of the paid and the direct price. Above it is an outline up to
 * the direct price, or, if svc cost more, the extra cost in another colour.
 */
export function DaysChart(props: {
  readonly bars: readonly DayBar[];
  readonly labelledBy: string;
  readonly write: (value: number) => string;
}) {
  const { bars, write } = props;
  const most = niceMost(Math.max(1, ...bars.map(({ paid, direct }) => Math.max(paid, direct))));
  const y = (value: number): number => BASE - (value / most) * (BASE - TOP);
  const step = (WIDTH - LEFT) / Math.max(1, bars.length);
  const rules = Array.from({ length: RULES + 1 }, (_, at) => (most * at) / RULES);
  return (
    <svg
      class="chart"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="group"
      aria-labelledby={props.labelledBy}
    >
      {rules.map((value) => (
        <g key={value}>
          {value > 0 && <line class="rule" x1={LEFT} x2={WIDTH} y1={y(value)} y2={y(value)} />}
          <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
            {write(value)}
          </text>
        </g>
      ))}
      {bars.map((bar, at) => (
        <Bar
          key={bar.key}
          bar={bar}
          y={y}
          x={LEFT + at * step}
          step={step}
          every={everyOf(bars)}
          at={at}
        />
      ))}
      <line class="base" x1={LEFT} x2={WIDTH} y1={BASE} y2={BASE} />
    </svg>
  );
}

interface BarProps {
  readonly bar: DayBar;
  readonly y: (value: number) => number;
  readonly x: number;
  readonly step: number;
  /** Only one of this many bars has texts, because texts may be wider than a bar. */
  readonly every: number;
  readonly at: number;
}

function Bar({ bar, y, x, step, every, at }: BarProps) {
  const width = Math.min(44, step * 0.64);
  const left = x + (step - width) / 2;
  const middle = x + step / 2;
  const { paid, direct } = bar;
  const top = y(Math.max(paid, direct));
  const isNamed = at % every === 0;
  return (
    <g>
      {direct + paid > 0 && (
        <a href={bar.href} aria-label={bar.label}>
          <title>{bar.label}</title>
          {direct > paid && (
            <rect
              class="wouldbe"
              x={left + 0.5}
              y={top}
              width={Math.max(1, width - 1)}
              height={Math.max(0.5, y(paid) - top)}
            />
          )}
          <rect
            class="f-paid"
            x={left}
            y={y(Math.min(paid, direct))}
            width={width}
            height={Math.max(1, BASE - y(Math.min(paid, direct)))}
          />
          {paid > direct && (
            <rect
              class="over"
              x={left}
              y={top}
              width={width}
              height={Math.max(1, y(direct) - top)}
            />
          )}
          {isNamed && (
            <text class="say" x={middle} y={top - 8} text-anchor="middle">
              {bar.say}
            </text>
          )}
        </a>
      )}
      {isNamed && (
        <text x={middle} y={292} text-anchor="middle">
          {bar.name}
        </text>
      )}
    </g>
  );
}

/** Returns how many bars are as wide as a text, which needs some 60 units of the drawing. */
function everyOf(bars: readonly DayBar[]): number {
  return Math.ceil((bars.length * 60) / (WIDTH - LEFT));
}

/** Rounds up to 1, 2, 4 or 8 times a power of ten, so that the numbers at the four lines are short. */
function niceMost(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const factor = [1, 2, 4, 8, 10].find((one) => one * power >= value) ?? 10;
  return factor * power;
}
