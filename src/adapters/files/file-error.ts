/** Thrown for a file or folder that svc cannot or must not use. The message is for users, and never quotes the file. */
export class FileError extends Error {
  override readonly name = 'FileError';
  /** What the user can do: a whole sentence, with a command if there is one. */
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

/** Returns the hint for a folder of svc that cannot be used. `code`: the system's error code. */
export function folderHint(code: string): string {
  const mend = FULL.includes(code) ? 'Free some space on its disk' : 'Make it writable for you';
  return `${mend}, or name another folder: SVC_CONFIG_HOME for the configuration, SVC_DATA_HOME for everything else.`;
}

const FULL: readonly string[] = ['ENOSPC', 'EDQUOT'];

/** Resolves to true if the work succeeds, and to false if it rejects. */
export async function succeeds(work: Promise<unknown>): Promise<boolean> {
  return work.then(
    () => true,
    () => false,
  );
}

/** Returns the code of an error, such as 'EACCES'; '' if it has none. */
export function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return typeof code === 'string' ? code : '';
}
