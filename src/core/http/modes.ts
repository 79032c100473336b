import { ProxyError } from '../errors.ts';
import { headerCount, headerOf, type RawHeaders } from './header-rules.ts';

export const MEMORY_MODES = ['off', 'read', 'write', 'read-write'] as const;
export type MemoryMode = (typeof MEMORY_MODES)[number];

export const COMPRESSION_MODES = ['passthrough', 'shadow', 'deterministic'] as const;
export type CompressionMode = (typeof COMPRESSION_MODES)[number];

/** The modes of memory and shortening for one request. */
export interface Modes {
  /** The effective memory mode: what the configuration, the request and the memory all allow. */
  readonly memory: MemoryMode;
  readonly reads: boolean;
  readonly writes: boolean;
  /** The requested mode, or else the configured one. A Plan has the mode that took effect. */
  readonly compression: CompressionMode;
}

export interface ModeLimits {
  readonly memoryMode: MemoryMode;
  readonly compressionMode: CompressionMode;
  /** What this user may do with the memory. With a memory service the scopes of the key decide. */
  readonly supports: { readonly read: boolean; readonly write: boolean };
}

/**
 * Combines configuration and request headers. The memory header can only lower the configured mode. The compression
 * header replaces the configured mode. Throws MODE_INVALID for an invalid header.
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

/** Returns the modes that the headers state. Throws MODE_INVALID for an invalid header, which may have meant 'off'. */
export function requestedModes(headers: RawHeaders) {
  return {
    memory: modeHeader(headers, 'x-svc-memory-mode', MEMORY_MODES) ?? 'read-write',
    compression: modeHeader(headers, 'x-svc-compression-mode', COMPRESSION_MODES),
  };
}

/** Returns the modes for an answer whose headers only report them. Invalid headers of the request count as absent. */
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

export function memoryModeOf(reads: boolean, writes: boolean): MemoryMode {
  if (reads) return writes ? 'read-write' : 'read';
  return writes ? 'write' : 'off';
}
