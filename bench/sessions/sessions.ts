import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Dialect } from '../../src/core/conversation/view.ts';

/** Real agent sessions: what each call saw, what the provider counted, and what was quoted later. */

export type SessionKind = 'claude-code' | 'codex';

export interface SessionItem {
  readonly role: 'user' | 'assistant';
  readonly kind: 'text' | 'thinking' | 'tool_use' | 'tool_result';
  readonly text: string;
  readonly tool?: string;
  readonly tid?: string;
  readonly call?: number;
  /** As counted by o200k. */
  readonly tok: number;
}

export interface SessionCall {
  readonly ts: number;
  /** The call saw the items from `a` up to `b`; a higher `a` follows a compaction. */
  readonly a: number;
  readonly b: number;
  readonly usage: { readonly in: number; readonly cw: number; readonly cr: number };
}

export interface Session {
  readonly id: string;
  readonly kind: SessionKind;
  readonly dialect: Dialect;
  readonly model: string;
  readonly items: readonly SessionItem[];
  readonly calls: readonly SessionCall[];
  /** The provider's tokens of everything before the items: system prompt and tools. */
  readonly staticTokens: number;
  /** The provider's tokens for one of o200k's. */
  readonly tokenRatio: number;
  /** The provider's tokens before each item: prices are in these. */
  readonly position: readonly number[];
  /** By call: groups of items, any one of which holds what the answer quotes. */
  readonly needs: ReadonlyMap<number, readonly (readonly number[])[]>;
}

// The provider's tokens for one of o200k's, measured on the growth of these sessions' own usage.
const TOKEN_RATIO: Readonly<Record<SessionKind, number>> = { 'claude-code': 1.265, codex: 1.114 };

/** Undefined when there are none. */
export function loadSessions(folder: string, kind: SessionKind): readonly Session[] | undefined {
  const path = join(folder, kind);
  const names = existsSync(path)
    ? readdirSync(path).filter((name) => name.endsWith('.json.gz'))
    : [];
  if (names.length === 0) return undefined;
  return names.toSorted().map((name) => {
    const file = join(path, name);
    const needs = join(folder, `needs-${kind}`, name);
    try {
      return readSession(kind, unzip(file), existsSync(needs) ? unzip(needs) : []);
    } catch (cause) {
      throw new NotASessionError(`${file} or its needs are no gzipped session.`, { cause });
    }
  });
}

export class NotASessionError extends Error {}

function readSession(kind: SessionKind, value: unknown, needs: unknown): Session {
  const { id, model, items, calls } = value as Pick<Session, 'id' | 'model' | 'items' | 'calls'>;
  const ratio = TOKEN_RATIO[kind];
  const position = [0];
  for (const { tok } of items) position.push((position.at(-1) ?? 0) + Math.round(tok * ratio));
  const [first] = calls;
  const used = first === undefined ? 0 : first.usage.in + first.usage.cw + first.usage.cr;
  return {
    id,
    model,
    kind,
    tokenRatio: ratio,
    dialect: kind === 'codex' ? 'openai_responses' : 'anthropic_messages',
    items,
    calls: calls.filter(({ a, b }) => b > a),
    staticTokens: Math.max(0, used - (position[first?.b ?? 0] ?? 0)),
    position,
    needs: new Map(needs as [number, number[][]][]),
  };
}

function unzip(path: string): unknown {
  return JSON.parse(gunzipSync(readFileSync(path)).toString('utf8'));
}
