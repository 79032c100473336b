/** The time, as the proxy asks for it. `core` never does: it gets the time as an argument. */
export interface Clock {
  /** Milliseconds since 1970, for times that are stored and shown. */
  now(): number;
  /** Milliseconds on a clock that never jumps, for durations. */
  monotonic(): number;
}
