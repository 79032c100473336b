/**
 * A file or folder that svc refuses to use. The message is for people: what happened and where,
 * never the file's content.
 */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** The remedy: a whole sentence, with the command where there is one. */
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** The remedy for any folder of svc that cannot be used. `code` is the system's. */
export function folderHint(code: string): string {
  const mend = FULL.includes(code) ? 'Free some space on its disk' : 'Make it writable for you';
  return `${mend}, or name another folder: SVC_CONFIG_HOME for the configuration, SVC_DATA_HOME for everything else.`;
}

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT'];

/** The system's code of an error ('EACCES'), or '' for anything else. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return typeof code === 'string' ? code : '';
}
