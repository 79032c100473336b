/** Quotes values so that shells take them literally. A text must have no NUL; cmd also loses some other characters. */
export const SHELLS = ['sh', 'fish', 'powershell', 'cmd'] as const;
export type Shell = (typeof SHELLS)[number];

type Text = (text: string) => string;

const QUOTES: Readonly<Record<Shell, Text>> = {
  // For a quote, close the quotes, add an escaped one, and open them again: so sh, dash, bash, ksh and zsh agree.
  sh: (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`,
  fish: (text) => `'${text.replaceAll(/['\\]/g, (character) => `\\${character}`)}'`,
  // For PowerShell typographic quotes are quotes too.
  powershell: (text) => `'${text.replaceAll(/['\u2018-\u201b]/g, (quote) => quote + quote)}'`,
  // cmd cannot quote these characters, so they are removed. No URL, token or host name of svc has them.
  cmd: (text) => `"${text.replaceAll(/["%!^\p{Cc}]/gu, '')}"`,
};

const EXPORTS: Readonly<Record<Shell, (name: string, quoted: string) => string>> = {
  sh: (name, quoted) => `export ${name}=${quoted}`,
  fish: (name, quoted) => `set -gx ${name} ${quoted}`,
  powershell: (name, quoted) => `$env:${name} = ${quoted}`,
  // The quotes are around the whole assignment, so that they do not become part of the value.
  cmd: (name, quoted) => `set "${name}=${quoted.slice(1)}`,
};

/** Quotes a text as one word; 'sh' also suits bash and zsh. */
export function shellQuote(text: string, shell: Shell): string {
  return QUOTES[shell](text);
}

/** Returns the line that sets an environment variable for programs which the shell starts. */
export function exportLine(name: string, value: string, shell: Shell): string {
  return EXPORTS[shell](name, shellQuote(value, shell));
}

export function tomlString(text: string): string {
  const escaped = text.replaceAll(/["\\\p{Cc}]/gu, (character) =>
    character === '"' || character === '\\'
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `"${escaped}"`;
}
