import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const recordings = join(import.meta.dirname, '..', 'recordings');

/** The request bodies of one recorded scenario, in order, as the client's own JSON.stringify wrote them. */
export function recordedBodies(scenario: string): Buffer[] {
  const folder = join(recordings, scenario);
  return readdirSync(folder)
    .toSorted()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recording)
    .flatMap(({ request: { body } }) =>
      body === undefined ? [] : [Buffer.from(JSON.stringify(body))],
    );
}

interface Recording {
  readonly request: { readonly body?: unknown };
}
