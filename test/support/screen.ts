import { Terminal } from '../../src/cli/terminal.ts';

/** A terminal whose output is kept; `columns` makes it one that a person looks at. */
export interface Screen {
  readonly terminal: Terminal;
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export function screen(columns?: number, environment: Record<string, string> = {}): Screen {
  const written = { stdout: '', stderr: '' };
  const outputOf = (name: 'stdout' | 'stderr') => ({
    write: (text: string | Uint8Array) => {
      written[name] += String(text);
      return true;
    },
    ...(columns === undefined ? {} : { isTTY: true, columns }),
  });
  const terminal = new Terminal({
    stdout: outputOf('stdout'),
    stderr: outputOf('stderr'),
    environment,
  });
  return { terminal, stdout: () => written.stdout, stderr: () => written.stderr };
}
