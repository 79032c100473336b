/** Between two values it interpolates; NaN for none. */
export function percentile(values, share) {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const low = sorted[Math.floor(place)];
  return low + (sorted[Math.ceil(place)] - low) * (place - Math.floor(place));
}

export function median(values) {
  return percentile(values, 0.5);
}

/** For a table: '-' for what was not measured. */
export function format(value, digits = 2) {
  if (value === undefined || value === null || Number.isNaN(value)) return '-';
  if (value === Infinity) return 'never';
  if (typeof value !== 'number') return String(value);
  return value.toFixed(Math.abs(value) >= 1000 ? 0 : digits);
}

/** A Markdown table. The first column is text, the others are figures. */
export function drawTable(columns, rows) {
  const texts = rows.map((row) => row.map((cell) => format(cell)));
  const widths = columns.map((name, at) =>
    Math.max(name.length, ...texts.map((row) => row[at].length)),
  );
  const line = (cells) =>
    `| ${cells.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join(' | ')} |`;
  const rule = widths.map((width, at) =>
    at === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`,
  );
  return [line(columns), `|${rule.join('|')}|`, ...texts.map(line)].join('\n');
}
