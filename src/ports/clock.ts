/** Time, seen from the proxy. `core` never asks for it: it is handed in as a fact. */
export interface Clock {
  /** Milliseconds since 1970, for what is stored and shown. */
  now(): number;
  /** Milliseconds on a clock that never jumps, for durations. */
  monotonic(): number;
}
