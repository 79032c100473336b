/** The outcome of asking the memory for one request, as `x-svc-memory-state` shows it. */
export type MemoryState =
  | 'off'
  | 'write_only'
  | 'recalled'
  | 'empty'
  | 'skipped_side_call'
  | 'skipped_unsupported'
  | 'degraded_timeout'
  | 'degraded_unavailable'
  | 'degraded_denied'
  | 'degraded_rate_limited'
  | 'degraded_invalid';
