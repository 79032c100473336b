/**
 * A block of lines in another program's TOML file, put in and taken out by lines: comments, order
 * and forms of everything else stay unchanged. The caller checks the result with a TOML parser.
 */

export const BLOCK_BEGIN = '# >>> svc: take this out with: svc disconnect codex';
export const BLOCK_END = '# <<< svc';
/** Before a line that had to go while the block is there. */
const SET_ASIDE = '# (set aside by svc) ';

export interface TomlBlock {
  /** Keys of the top level, and the same keys of the file that give way to them. */
  readonly top: Readonly<Record<string, string>>;
  /** Header and keys of each table; a table of this name, or below the first one, gives way. */
  readonly tables: readonly (readonly string[])[];
}

/** The change, recorded so that it can be undone in a file that has changed since. */
export interface TomlChange {
  /** The lines between the markers. */
  readonly lines: readonly string[];
  /** The lines that were set aside, as they were, without their ends. */
  readonly aside: readonly string[];
}

/** True when the text up to a line is whole TOML: then the line is inside no string and no array. */
export type IsWhole = (text: string) => boolean;

export function insertBlock(
  text: string,
  block: TomlBlock,
  isWhole: IsWhole,
): { readonly text: string; readonly change: TomlChange } {
  const lines = linesOf(text);
  const headers = headerIndexes(lines, isWhole);
  const firstHeader = headers[0] ?? lines.length;
  const given = givenWay(lines, { block, headers, isWhole });
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
 * The text without the block's own lines and with the lines that were set aside. 'absent': there is no
 * block in it. 'lost': nor are the lines that were set aside. 'edited': lines of either have changed.
 * Lines that another program put in stay, also between the markers: Codex writes a choice of `/model`
 * after the last key of the top level, which is the block's.
 */
export function removeBlock(
  text: string,
  { lines: body, aside }: TomlChange,
): { readonly text: string } | 'absent' | 'edited' | 'lost' {
  const lines = linesOf(text);
  const begin = lines.findIndex((line) => bare(line) === BLOCK_BEGIN);
  if (begin === -1) {
    const known = new Set(lines.map(bare));
    return aside.every((line) => known.has(line)) ? 'absent' : 'lost';
  }
  const own = new Set([begin]);
  let at = begin;
  for (const line of body) {
    const found = lines.findIndex((one, index) => index > at && bare(one) === line);
    if (line === '') {
      // The gap above a table: Codex may have written a key before it, or taken it out.
      const next = lines.findIndex((one, index) => index > at && /^\s*\[/.test(one));
      if (next > at + 1 && bare(lines[next - 1] ?? '') === '') own.add(next - 1);
      continue;
    }
    if (found === -1) return 'edited';
    own.add(found);
    at = found;
  }
  // Codex writes its own tables before the comments at the end of the file.
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

interface Giving {
  readonly block: TomlBlock;
  readonly headers: readonly number[];
  readonly isWhole: IsWhole;
}

/** The indexes of the lines that say what the block says. */
function givenWay(lines: readonly string[], { block, headers, isWhole }: Giving): Set<number> {
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

/** `[ model_providers."svc" ]` is `model_providers.svc`; names with dots of their own are not ours. */
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
