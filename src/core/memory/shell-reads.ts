/** Reads in a shell's command which files it prints. */

/** They print the files that they name. */
const PRINTERS: ReadonlySet<string> = new Set(
  'cat bat batcat head tail nl less more sed'.split(' '),
);
// Real commands are shorter; after a here-document marker the command only holds text to be
// written.
const COMMAND_CHARS = 4_096;
const HERE_DOCUMENT = '<<';
const WORDS = /'[^']*'|"[^"]*"|[<>]+&?\d?|[^\s'"<>]+/g;

/**
 * The files that a command prints, whole or in part, by the names in the command. Shell expansions
 * and quotes inside a word are not resolved: such a file is missed.
 */
export function filesPrinted(command: string): readonly string[] {
  const [text = ''] = command.slice(0, COMMAND_CHARS).split(HERE_DOCUMENT);
  return text.split(/&&|[|;\n]/).flatMap(filesOfOne);
}

function filesOfOne(command: string): readonly string[] {
  const [name = '', ...words] = command.match(WORDS) ?? [];
  const printer = name.slice(name.lastIndexOf('/') + 1);
  if (!PRINTERS.has(printer)) return [];
  const isSed = printer === 'sed';
  // Without -n it is used to change a text, and with -i it changes the file.
  if (isSed && (!words.includes('-n') || words.some((word) => word.startsWith('-i')))) return [];
  const files = words.filter((word, at) => !isOption(word) && !words[at - 1]?.includes('>'));
  return files.slice(isSed ? 1 : 0).map(unquoted);
}

/** Options, numbers that belong to one, and arrows. */
function isOption(word: string): boolean {
  return /^(?:[-+].*|\d+|[<>].*)$/.test(word);
}

function unquoted(word: string): string {
  return /^['"]/.test(word) ? word.slice(1, -1) : word;
}
