import type { ServiceStore } from '../../src/ports/service-store.ts';
import { MemoryError } from '../../../src/core/errors.ts';

/** A real store of a service that can be taken away: it then fails at once, or answers nothing. */

export interface AwayStore {
  state: 'there' | 'away' | 'silent';
  readonly wrap: (store: ServiceStore) => ServiceStore;
}

export function awayStore(): AwayStore {
  const own: AwayStore = {
    state: 'there',
    wrap: (store) => {
      const wrapped = guarded(store, own);
      return {
        ...wrapped,
        of: (tenant) => guarded(store.of(tenant), own),
        close: () => store.close(),
      };
    },
  };
  return own;
}

/** The same methods, each behind the state. */
function guarded<Store extends object>(store: Store, own: AwayStore): Store {
  const methods = Object.entries(store).map(([name, method]) => {
    const call = async (...given: unknown[]): Promise<unknown> => {
      if (own.state === 'away') throw new MemoryError('unavailable', 'The store is away.');
      if (own.state === 'silent') return silence(given.at(-1));
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- A port's members are all methods.
      return (method as (...all: unknown[]) => unknown)(...given);
    };
    return [name, call];
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It has the same names.
  return Object.fromEntries(methods) as Store;
}

/** Nothing is answered; a call ends by its own signal alone, as a call of the real client does. */
function silence(signal: unknown): Promise<never> {
  return new Promise((_, reject) => {
    if (!(signal instanceof AbortSignal)) return;
    const late = new MemoryError('timeout', 'The store did not answer in time.');
    signal.addEventListener('abort', () => reject(late), { once: true });
  });
}
