import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const recordings = join(import.meta.dirname, '..', 'recordings');

/** The request bodies of one recorded scenario, in order, as the client's own JSON.stringify wrote them. */
export function recordedBodies(scenario: string): Buffer[] {
  return recordingsIn(scenario).flatMap(({ request: { body } }) =>
    body === undefined ? [] : [Buffer.from(JSON.stringify(body))],
  );
}

export interface RecordedCall {
  readonly path: string;
  /** As sent, without those that belong to one connection or one key. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

const OF_THE_CONNECTION =
  /^(?:host|connection|content-length|content-encoding|content-type|authorization|x-api-key|accept-encoding|transfer-encoding|expect)$/i;

/** The requests of one recorded scenario that have a body, in order. */
export function recordedCalls(scenario: string): RecordedCall[] {
  return recordingsIn(scenario).flatMap(({ request: { path = '', headers = [], body } }) => {
    if (body === undefined) return [];
    const own = headers.filter(([name]) => !OF_THE_CONNECTION.test(name));
    // What states the project was cut out of the recordings.
    const all = { ...Object.fromEntries(own), 'x-svc-memory-space': 'recorded' };
    return [{ path, headers: all, body: Buffer.from(JSON.stringify(body)) }];
  });
}

function recordingsIn(scenario: string): Recording[] {
  const folder = join(recordings, scenario);
  return readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .toSorted()
    .map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')) as Recording);
}

interface Recording {
  readonly request: {
    readonly path?: string;
    readonly headers?: readonly (readonly [string, string])[];
    readonly body?: unknown;
  };
}
