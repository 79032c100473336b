/** Gives the time to the proxy. Code in `core` gets the time as an argument instead. */
export interface Clock {
  /** Returns milliseconds since 1970, for times that are stored and shown. */
  now(): number;
  /** Returns milliseconds on a clock that nobody sets, for durations. It may stop while the machine sleeps. */
  monotonic(): number;
}
