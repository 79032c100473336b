import { ProxyError } from '../errors.ts';
import { headerCount, headerOf, type RawHeaders } from './header-rules.ts';

export const MEMORY_MODES = ['off', 'read', 'write', 'read-write'] as const;
export type MemoryMode = (typeof MEMORY_MODES)[number];

export const COMPRESSION_MODES = ['passthrough', 'shadow', 'deterministic'] as const;
export type CompressionMode = (typeof COMPRESSION_MODES)[number];

/** The modes of memory and shortening for this request, after everything that may lower them. */
export interface Modes {
  /** The effective memory mode: the least of what is configured, requested and supported by the memory. */
  readonly memory: MemoryMode;
  readonly reads: boolean;
  readonly writes: boolean;
  /** The requested mode; what really happened is in the plan. */
  readonly compression: CompressionMode;
}

export interface ModeLimits {
  readonly memoryMode: MemoryMode;
  readonly compressionMode: CompressionMode;
  /** What this user may do with the memory; with a memory service, the scopes of the key. */
  readonly supports: { readonly read: boolean; readonly write: boolean };
}

/**
 * Combines configuration and request headers. The memory header can only lower the configured mode; the compression
 * header replaces it for this request. Throws MODE_INVALID before anything is sent.
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

/** Returns what the headers ask for. Throws MODE_INVALID instead of guessing: 'off' may have been meant. */
export function requestedModes(headers: RawHeaders) {
  return {
    memory: modeHeader(headers, 'x-svc-memory-mode', MEMORY_MODES) ?? 'read-write',
    compression: modeHeader(headers, 'x-svc-compression-mode', COMPRESSION_MODES),
  };
}

/** Returns the modes for an answer that only reports them: an unknown header counts as absent. */
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
  // A repeated header is refused even if both values agree: which one counts would be a guess.
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
