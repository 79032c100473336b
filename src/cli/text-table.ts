/** The shape of a table of text. Its cells must be printable and of one line. */
export interface TableShape {
  /** Bound on the characters of a line. Columns that do not fit whole are left out, the last ones first. */
  readonly columns: number;
  /** Indexes of the columns that are aligned left. Others are aligned right, as numbers are. */
  readonly left: readonly number[];
}

/** Returns the rows as lines with aligned columns. */
export function table(rows: readonly (readonly string[])[], shape: TableShape): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, length(cell));
    }
  }
  const shown = fittingColumns(widths, shape.columns);
  return rows.map((row) => {
    const cells = row.slice(0, shown).map((cell, index) => {
      const space = ' '.repeat((widths[index] ?? 0) - length(cell));
      return shape.left.includes(index) ? cell + space : space + cell;
    });
    return Array.from(cells.join('  ').trimEnd()).slice(0, shape.columns).join('');
  });
}

/** Returns how many columns fit completely; at least 1. */
function fittingColumns(widths: readonly number[], columns: number): number {
  let used = 0;
  const over = widths.findIndex((width, index) => {
    used += width + (index === 0 ? 0 : 2);
    return used > columns;
  });
  return over === -1 ? widths.length : Math.max(1, over);
}

/**
 * Wraps a text between words to lines of at most `columns` characters; a longer word stays whole. All lines but the
 * first begin with `indent`.
 */
export function wrapped(text: string, columns: number, indent = ''): readonly string[] {
  const lines: string[] = [];
  let line: string | undefined;
  for (const word of text.split(' ')) {
    const longer: string = line === undefined ? word : `${line} ${word}`;
    const isOver = line !== undefined && line.trim() !== '' && length(longer) > columns;
    if (isOver) lines.push(line ?? '');
    line = isOver ? `${indent}${word}` : longer;
  }
  return [...lines, line ?? ''];
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** Returns a bar whose length is `share`, from 0 to 1, of `columns` characters, exact to an eighth of a character. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(Math.min(Math.max(share, 0), 1) * columns * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

function length(text: string): number {
  return Array.from(text).length;
}
