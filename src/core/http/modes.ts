import { ProxyError } from '../errors.ts';
import { headerCount, headerOf, type RawHeaders } from './header-rules.ts';

export const MEMORY_MODES = ['off', 'read', 'write', 'read-write'] as const;
export type MemoryMode = (typeof MEMORY_MODES)[number];

export const COMPRESSION_MODES = ['passthrough', 'shadow', 'deterministic'] as const;
export type CompressionMode = (typeof COMPRESSION_MODES)[number];

/** The modes of memory and shortening for this request, after everything that may lower them. */
export interface Modes {
  /** The effective memory mode: configured ∩ requested ∩ what the memory supports. */
  readonly memory: MemoryMode;
  readonly reads: boolean;
  readonly writes: boolean;
  /** As requested; the outcome may differ and is in the plan. */
  readonly compression: CompressionMode;
}

export interface ModeLimits {
  readonly memoryMode: MemoryMode;
  readonly compressionMode: CompressionMode;
  /** The rights of this user at the memory: with a hosted service, the scopes of the key. */
  readonly supports: { readonly read: boolean; readonly write: boolean };
}

/**
 * Joins configuration and request headers. The memory header can only lower what is configured; the
 * compression header replaces it for this request. Throws MODE_INVALID, before anything was sent.
 */
export function decideModes(headers: RawHeaders, limits: ModeLimits): Modes {
  const { memory, compression } = requestedModes(headers);
  const all = [RIGHTS[memory], RIGHTS[limits.memoryMode], limits.supports];
  const reads = all.every(({ read }) => read);
  const writes = all.every(({ write }) => write);
  return {
    memory: memoryModeOf(reads, writes),
    reads,
    writes,
    compression: compression ?? limits.compressionMode,
  };
}

/** What the headers ask for. Throws MODE_INVALID: a mode must not be guessed, 'off' may have been meant. */
export function requestedModes(headers: RawHeaders) {
  return {
    memory: modeHeader(headers, 'x-svc-memory-mode', MEMORY_MODES) ?? 'read-write',
    compression: modeHeader(headers, 'x-svc-compression-mode', COMPRESSION_MODES),
  };
}

/** The modes for an answer that only tells them: a header that is not understood asks for nothing. */
export function modesToTell(headers: RawHeaders, limits: ModeLimits): Modes {
  try {
    return decideModes(headers, limits);
  } catch {
    return decideModes([], limits);
  }
}

function modeHeader<Mode extends string>(
  headers: RawHeaders,
  name: string,
  modes: readonly Mode[],
): Mode | undefined {
  const value = headerOf(headers, name);
  if (value === undefined) return undefined;
  const mode = modes.find((it) => it === value);
  // A repeated header is refused even when both agree: which one counts would be a guess.
  if (mode === undefined || headerCount(headers, name) > 1) {
    throw new ProxyError(
      'MODE_INVALID',
      `The header ${name} must be given once, as one of ${modes.join(', ')}.`,
    );
  }
  return mode;
}

const RIGHTS: Readonly<Record<MemoryMode, ModeLimits['supports']>> = {
  off: { read: false, write: false },
  read: { read: true, write: false },
  write: { read: false, write: true },
  'read-write': { read: true, write: true },
};

function memoryModeOf(reads: boolean, writes: boolean): MemoryMode {
  if (reads) return writes ? 'read-write' : 'read';
  return writes ? 'write' : 'off';
}
