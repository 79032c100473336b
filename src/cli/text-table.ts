/** Columns of text for a screen of a given width. Cells are printable and one line already. */
export interface TableShape {
  /** Characters in a line; what is over is cut off. */
  readonly columns: number;
  /** Columns that are aligned left; numbers are not. */
  readonly left: readonly number[];
}

export function table(rows: readonly (readonly string[])[], shape: TableShape): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) {
      widths[index] = Math.max(widths[index] ?? 0, length(cell));
    }
  }
  return rows.map((row) => {
    const cells = row.map((cell, index) => {
      const space = ' '.repeat((widths[index] ?? 0) - length(cell));
      return shape.left.includes(index) ? cell + space : space + cell;
    });
    return Array.from(cells.join('  ').trimEnd()).slice(0, shape.columns).join('');
  });
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const;

/** `share` from 0 to 1 of `columns` characters, to an eighth of a character. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(Math.min(Math.max(share, 0), 1) * columns * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

function length(text: string): number {
  return Array.from(text).length;
}
