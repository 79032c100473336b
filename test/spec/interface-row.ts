/** One statement of the interface. */
export interface InterfaceRow {
  readonly statement: string;
  /** The code that has to keep it. */
  readonly keeper: string;
}

export function row(statement: string, keeper: string): InterfaceRow {
  return { statement, keeper };
}
