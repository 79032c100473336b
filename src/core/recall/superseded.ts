/**
 * Finds superseded exchanges: newer ones are about the same files, and a file has changed in between. If no file
 * changed, all these exchanges describe the same content, so none is superseded.
 */

export interface Statement {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly provenance?:
    | { readonly files: readonly { readonly path: string; readonly hash: string }[] }
    | undefined;
}

/**
 * Removes superseded exchanges. An exchange is superseded if `found` has a newer exchange about each of its files, and
 * at least one of these files has changed in between.
 */
export function withoutSuperseded<Kind>(
  found: readonly Kind[],
  statementOf: (one: Kind) => Statement,
): Kind[] {
  const statements = found.map(statementOf);
  return found.filter((one) => !isSuperseded(statementOf(one), statements));
}

function isSuperseded({ at, provenance }: Statement, others: readonly Statement[]): boolean {
  const files = provenance?.files ?? [];
  if (files.length === 0) return false;
  const newer = others.filter((other) => other.at > at);
  const later = files.map(({ path }) =>
    newer.flatMap(({ provenance: own }) => own?.files.filter((file) => file.path === path) ?? []),
  );
  return (
    later.every((states) => states.length > 0) &&
    later.some((states, place) => states.some(({ hash }) => hash !== files[place]?.hash))
  );
}
