import type { NewObject } from '../../ports/service-store.ts';

/** Where the records of a batch come from. */

export interface SourceSum {
  readonly session: string;
  readonly client: string;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly records: number;
  readonly bytes: number;
}

function addedTo(sum: SourceSum | undefined, object: NewObject): SourceSum {
  const { session, client, observedAt: at, bytes } = object;
  return {
    session,
    client,
    firstSeen: Math.min(sum?.firstSeen ?? at, at),
    lastSeen: Math.max(sum?.lastSeen ?? at, at),
    records: (sum?.records ?? 0) + 1,
    bytes: (sum?.bytes ?? 0) + bytes.length,
  };
}

function sourceKey({ session, client }: Pick<NewObject, 'session' | 'client'>): string {
  return JSON.stringify([session, client].map((one) => one.replaceAll('\0', '�')));
}

/** By session and client. */
export function sourcesOf(objects: readonly NewObject[]): SourceSum[] {
  const sources = new Map<string, SourceSum>();
  for (const object of objects) {
    const key = sourceKey(object);
    sources.set(key, addedTo(sources.get(key), object));
  }
  return [...sources.values()];
}
