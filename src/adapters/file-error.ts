/**
 * A file or folder that svc will not use as it is. The message is for people: what happened and
 * where, never what the file holds.
 */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** What to do about it: a whole sentence, with the command where there is one. */
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** The hint for a folder that cannot be used, whichever of svc's it is. */
export const OTHER_FOLDER =
  'Make it writable for you, or name another folder: SVC_CONFIG_HOME for the configuration, SVC_DATA_HOME for everything else.';

/** The system's code of an error ('EACCES'), or '' for anything else. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return typeof code === 'string' ? code : '';
}
