/**
 * Inserts a block of lines into another program's TOML file, comments out the keys and tables that the block has too,
 * and undoes both. Nothing else in the file changes. The caller checks the result with a TOML parser.
 */

export const BLOCK_BEGIN = '# >>> svc: take this out with: svc disconnect codex';
export const BLOCK_END = '# <<< svc';
/** The prefix with which a line is commented out as long as the block is in the file. */
const SET_ASIDE = '# (set aside by svc) ';

export interface TomlBlock {
  /** The block's top-level keys. Equal top-level keys of the file are commented out. */
  readonly top: Readonly<Record<string, string>>;
  /**
   * The lines of each table: its header and its keys. Tables of the file with the same name, or below it, are commented
   * out.
   */
  readonly tables: readonly (readonly string[])[];
}

/** What svc changed. It is recorded, so that svc can undo the change even after further changes of the file. */
export interface TomlChange {
  /** The lines between the markers. */
  readonly lines: readonly string[];
  /** The commented-out lines in their original form, without line ends. */
  readonly aside: readonly string[];
}

/** Says whether a text is complete TOML. If the text before a line is complete, the line is in no string or array. */
export type IsWhole = (text: string) => boolean;

export function insertBlock(
  text: string,
  block: TomlBlock,
  isWhole: IsWhole,
): { readonly text: string; readonly change: TomlChange } {
  const lines = linesOf(text);
  const headers = headerIndexes(lines, isWhole);
  const firstHeader = headers[0] ?? lines.length;
  const given = givenWay(lines, block, headers, isWhole);
  const body = [
    ...Object.entries(block.top).map(([key, value]) => `${key} = ${value}`),
    ...block.tables.flatMap((table) => ['', ...table]),
  ];
  const end = text.includes('\r\n') ? '\r\n' : '\n';
  const inserted = [BLOCK_BEGIN, ...body, BLOCK_END].map((line) => line + end).join('');
  const kept = lines.map((line, index) => (given.has(index) ? SET_ASIDE + line : line));
  const before = kept.slice(0, firstHeader).join('');
  const gap = before === '' || before.endsWith('\n') ? '' : end;
  return {
    text: before + gap + inserted + kept.slice(firstHeader).join(''),
    change: { lines: body, aside: [...given].map((index) => bare(lines[index] ?? '')) },
  };
}

/**
 * Removes the block and restores the commented-out lines. If the file has no block, returns 'absent', or 'lost' if it
 * does not have the original form of the commented-out lines either. Returns 'edited' if a line of the block or a
 * commented-out line was changed. Lines that another program added stay, even inside the block: Codex writes the choice
 * made with `/model` after the last top-level key of the file, and that key may be in the block.
 */
export function removeBlock(
  text: string,
  { lines: body, aside }: TomlChange,
): { readonly text: string } | 'absent' | 'edited' | 'lost' {
  const lines = linesOf(text);
  const begin = lines.findIndex((line) => bare(line) === BLOCK_BEGIN);
  // A program that writes the whole file anew leaves comments out, so BLOCK_BEGIN and BLOCK_END may be missing.
  const known = new Set(lines.map(bare));
  if (begin === -1 && !body.every((line) => line === '' || known.has(line))) {
    return aside.every((line) => known.has(line)) ? 'absent' : 'lost';
  }
  const own = new Set(begin === -1 ? [] : [begin]);
  let at = begin;
  for (const line of body) {
    const found = lines.findIndex((one, index) => index > at && bare(one) === line);
    if (line === '') {
      // In the block, a blank line is above each table. Codex may have removed it, or written a key above it.
      const next = lines.findIndex((one, index) => index > at && /^\s*\[/.test(one));
      if (next > at + 1 && bare(lines[next - 1] ?? '') === '') own.add(next - 1);
      continue;
    }
    if (found === -1) return 'edited';
    own.add(found);
    at = found;
  }
  // BLOCK_END may be further down: Codex writes its own tables before the comments at the end of the file.
  const end = lines.findIndex((line, index) => index > at && bare(line) === BLOCK_END);
  if (end !== -1) own.add(end);
  const kept = lines.filter((_, index) => !own.has(index));
  for (const original of aside) {
    const place = kept.findIndex((line) => bare(line) === SET_ASIDE + original);
    if (place === -1) return 'edited';
    kept[place] = (kept[place] ?? '').slice(SET_ASIDE.length);
  }
  return { text: kept.join('') };
}

/** Returns the indexes of the lines to comment out: keys and tables that the block has too. */
function givenWay(
  lines: readonly string[],
  block: TomlBlock,
  headers: readonly number[],
  isWhole: IsWhole,
): Set<number> {
  const given = new Set<number>();
  const firstHeader = headers[0] ?? lines.length;
  for (const [index, line] of lines.slice(0, firstHeader).entries()) {
    const key = /^\s*(["']?)([\w-]+)\1\s*=/.exec(line)?.[2] ?? '';
    const isTaken = Object.hasOwn(block.top, key);
    if (isTaken && isWhole(lines.slice(0, index).join(''))) given.add(index);
  }
  const names = block.tables.map(([header = '']) => tableName(header));
  for (const [nth, start] of headers.entries()) {
    const name = tableName(lines[start] ?? '');
    if (!names.some((own) => name === own || name.startsWith(`${own}.`))) continue;
    let end = headers[nth + 1] ?? lines.length;
    // Comments and blank lines above the next table belong to that table.
    while (/^\s*(?:#.*)?$/.test(bare(lines[end - 1] ?? ''))) end -= 1;
    for (let index = start; index < end; index += 1) given.add(index);
  }
  return given;
}

function headerIndexes(lines: readonly string[], isWhole: IsWhole): number[] {
  return lines.flatMap((line, index) =>
    /^\s*\[/.test(line) && isWhole(lines.slice(0, index).join('')) ? [index] : [],
  );
}

/**
 * Returns the name in a table header: `[ model_providers."svc" ]` has `model_providers.svc`. It may be wrong for a name
 * with a quoted dot, which svc's tables never have.
 */
function tableName(line: string): string {
  const inside = /^\s*\[\s*([^\]]*?)\s*\]/.exec(line)?.[1] ?? '';
  return inside.replaceAll(/["']/g, '').replaceAll(/\s*\.\s*/g, '.');
}

function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function bare(line: string): string {
  return line.replace(/\r?\n$/, '');
}
