/** Gives the time to the proxy. `core` does not use it: it gets the time as an argument. */
export interface Clock {
  /** Returns milliseconds since 1970, for times that are stored and shown. */
  now(): number;
  /** Milliseconds on a clock that never jumps, for durations. */
  monotonic(): number;
}
