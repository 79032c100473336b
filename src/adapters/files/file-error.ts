/** Thrown for a file or folder that svc refuses. The message is for users, and never has the file's content. */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** What the user can do: a whole sentence, with a command if there is one. */
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** Says what to do about a folder of svc that cannot be used. `code`: the system's error code. */
export function folderHint(code: string): string {
  const mend = FULL.includes(code) ? 'Free some space on its disk' : 'Make it writable for you';
  return `${mend}, or name another folder: SVC_CONFIG_HOME for the configuration, SVC_DATA_HOME for everything else.`;
}

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT'];

/** Returns the system's code of an error ('EACCES'), or '' for anything else. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return typeof code === 'string' ? code : '';
}
