/** A line for the user: a constant code, and fields that never contain a key, a header, a body or a prompt. */
export interface SafeLine {
  readonly code: string;
  readonly fields?: Readonly<Record<string, string | number | boolean>>;
}

export type Report = (line: SafeLine) => void;
