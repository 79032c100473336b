/**
 * The part of an AbortSignal that svc uses. Every AbortSignal is one. To make an AbortSignal costs 15 us,
 * so a signal that each request needs is not one.
 */
export interface Cancellation {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  /** Each listener is called once. */
  addEventListener(type: 'abort', listener: () => void, options: { once: true }): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}
