/**
 * Faults of a block's form that need no reader: pieces of sentences, values that are cut off, and lines
 * that the model has before it already. They are found by the texts alone, never by the product's code.
 */
import { BRIEF_HEAD, entriesOf } from './coding-labels.mjs';

export const FAULTS = ['fragments', 'cut', 'cutValues', 'inPrompt', 'repeated', 'unanswered'];

/** `earlier`: the blocks that the request carries already. `sources`: texts that the lines may come from. */
export function faultsOf(block, { prompt, earlier, sources }) {
  const told = linesOf(block);
  const before = new Set(earlier.flatMap(linesOf).map(bare));
  const asked = bare(prompt);
  const texts = sources.map(spread);
  const seen = new Set();
  const found = { lines: told.length, ...Object.fromEntries(FAULTS.map((name) => [name, []])) };
  for (const line of told) {
    const key = bare(line);
    if (isFragment(line)) found.fragments.push(line);
    if (key.length >= SHORT && asked.includes(key)) found.inPrompt.push(line);
    if (seen.has(key) || before.has(key)) found.repeated.push(line);
    seen.add(key);
    const rest = restOf(line, texts);
    if (rest === '' || rest === undefined) continue;
    found.cut.push(line);
    // Its reference stands below the list of sessions, or above the lines of its exchange.
    if (VALUE.test(rest) && line.endsWith('…') === false)
      found.cutValues.push(`${line} // ${rest}`);
    else if (VALUE.test(rest) && !block.includes('\nWhole '))
      found.cutValues.push(`${line} // ${rest}`);
  }
  found.unanswered = unansweredIn(block);
  return found;
}

function linesOf(block) {
  const { lines, brief } = entriesOf(block);
  return [...brief, ...lines].flatMap((entry) => entry.split('\n'));
}

const SHORT = 12;
/** What cannot be guessed: figures, code, names with capitals inside. */
const VALUE = /\d|`|[a-z][A-Z]|\w_\w|\w\.\w|\w\/\w/;

/** A heading, a row of a table, a number without its item, a bracket that never closes, a drawn line. */
function isFragment(line) {
  const words = line.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const isHeading = words.length <= 4 && !/[.!?`…]/u.test(line);
  const isRow = /\s\|\s|^\||\|$/.test(line);
  const isMark = /^\W*\w{1,3}[.)]\W*$/.test(line);
  return (
    isHeading || isRow || isMark || /[:：,(]$/.test(line) || /[─│├└╭╰]/.test(line) || isOpen(line)
  );
}

function isOpen(line) {
  const count = (sign) => line.split(sign).length - 1;
  return count('`') % 2 === 1 || count('(') > count(')');
}

/** Letters and digits of a text, and where each stands in it. */
function spread(text) {
  const places = [];
  let letters = '';
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at].toLowerCase();
    if (!/[\p{L}\p{N}]/u.test(sign)) continue;
    letters += sign;
    places.push(at);
  }
  return { text, letters, places };
}

/** What its source says after the line up to the end of the sentence; undefined where no source has it. */
function restOf(line, texts) {
  const wanted = bare(line);
  const rests = texts.flatMap(({ text, letters, places }) => {
    const at = wanted === '' ? -1 : letters.indexOf(wanted);
    if (at === -1) return [];
    const behind = text.slice((places[at + wanted.length - 1] ?? 0) + 1);
    return [
      behind
        .split(/[.!?](?=\s|$|["'`*)])|[。！？\n]/, 1)[0]
        .replaceAll(/[*_`"'|)\]]/g, '')
        .trim(),
    ];
  });
  if (rests.length === 0) return undefined;
  // Equal words may stand in several texts; one of them ends here.
  return rests.find((rest) => !/[\p{L}\p{N}]/u.test(rest)) === undefined ? rests[0] : '';
}

/** Questions of a person under whose reference no answer stands. */
function unansweredIn(block) {
  const found = [];
  let asked = [];
  let isBrief = false;
  for (const line of [...block.split('\n'), 'm_end:']) {
    // A title says what was asked, so it needs no answer.
    isBrief = line === BRIEF_HEAD || (isBrief && line.startsWith('- '));
    if (isBrief) continue;
    if (/^(?:\d{4}-\d\d-\d\d )?m_\w+.*:$/.test(line)) {
      found.push(...asked);
      asked = [];
    } else if (line.startsWith('- assistant: ')) asked = [];
    else if (/^- .*[?？]$/.test(line)) asked.push(line);
  }
  return found;
}

function bare(text) {
  return text
    .replaceAll('&lt;', '')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, '');
}
