/**
 * Values as the shells of this world take them literally (T6). Works for every text without NUL;
 * nothing in it is ever expanded, run or ended early.
 */
export const SHELLS = ['sh', 'fish', 'powershell', 'cmd'] as const;
export type Shell = (typeof SHELLS)[number];

type Text = (text: string) => string;

const QUOTES: Readonly<Record<Shell, Text>> = {
  // Close, an escaped quote, open again: what sh, dash, bash, ksh and zsh all read alike.
  sh: (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`,
  fish: (text) => `'${text.replaceAll(/['\\]/g, (character) => `\\${character}`)}'`,
  // PowerShell takes the typographic quotes for quotes too.
  powershell: (text) => `'${text.replaceAll(/['\u2018-\u201b]/g, (quote) => quote + quote)}'`,
  // cmd has no form for these at all; no address, token or host name has them.
  cmd: (text) => `"${text.replaceAll(/["%!^\p{Cc}]/gu, '')}"`,
};

const EXPORTS: Readonly<Record<Shell, (name: string, quoted: string) => string>> = {
  sh: (name, quoted) => `export ${name}=${quoted}`,
  fish: (name, quoted) => `set -gx ${name} ${quoted}`,
  powershell: (name, quoted) => `$env:${name} = ${quoted}`,
  // The quotes go around the whole: within them & and | are text, and they are no part of the value.
  cmd: (name, quoted) => `set "${name}=${quoted.slice(1)}`,
};

/** The text as one word; 'sh' is right for bash and zsh too. */
export function shellQuote(text: string, shell: Shell): string {
  return QUOTES[shell](text);
}

/** The line that sets an environment variable for the programs that the shell starts. */
export function exportLine(name: string, value: string, shell: Shell): string {
  return EXPORTS[shell](name, shellQuote(value, shell));
}

/** A TOML basic string. */
export function tomlString(text: string): string {
  const escaped = text.replaceAll(/["\\\p{Cc}]/gu, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${escaped}"`;
}
