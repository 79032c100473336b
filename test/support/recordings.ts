import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Dialect } from '../../src/core/conversation/view.ts';

/** What a real client sent, and what the scripted provider answered. */
export interface Recording {
  /** `<client and version>/<scenario>/<number>.json`, as the golden file names it. */
  readonly name: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: Record<string, unknown>;
  readonly dialect: Dialect | undefined;
  readonly answer: string;
  readonly status: number;
  /** The client hung up before the answer had ended. */
  readonly isCut: boolean;
}

interface RawRecording {
  readonly clientClosedEarly?: boolean;
  readonly fault?: unknown;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly headers: readonly (readonly [string, string])[];
    readonly body?: unknown;
  };
  readonly response?: { readonly status?: number; readonly body?: unknown };
}

const folder = join(import.meta.dirname, '..', 'recordings');

/** All recorded POSTs with a JSON body, telemetry included, in the order of their names. */
export function recordings(): readonly Recording[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => /\/\d+\.json$/.test(name))
    .toSorted()
    .map(readRecording)
    .filter((recording) => recording !== undefined);
}

export interface Golden {
  readonly client: string;
  readonly kind: string;
  readonly session: string;
  readonly human: readonly string[];
}

export function golden(): Readonly<Record<string, Golden>> {
  return JSON.parse(readFileSync(join(folder, 'golden-human-text.json'), 'utf8'));
}

function readRecording(name: string): Recording | undefined {
  const raw = JSON.parse(readFileSync(join(folder, name), 'utf8')) as RawRecording;
  const { method, path, headers, body } = raw.request;
  if (method !== 'POST' || typeof body !== 'object' || body === null) return undefined;
  return {
    name,
    path,
    headers: headers.flat(),
    body: body as Record<string, unknown>,
    dialect: dialectOf(path),
    answer: typeof raw.response?.body === 'string' ? raw.response.body : '',
    status: raw.response?.status ?? 0,
    isCut: raw.clientClosedEarly === true || raw.fault !== undefined,
  };
}

function dialectOf(path: string): Dialect | undefined {
  const plain = path.replace(/\?.*$/s, '');
  if (plain.endsWith('/chat/completions')) return 'openai_chat_completions';
  if (plain.endsWith('/responses')) return 'openai_responses';
  return /\/messages(?:\/count_tokens)?$/.test(plain) ? 'anthropic_messages' : undefined;
}
