import type { HealthAnswer, StoreAnswer } from '../../ports/ui-api.ts';
import type { ApiAnswer, UiRoute } from './ui-routes.ts';

/** The calls of the health view. Only `live` spends money, and only a click triggers it. */
interface HealthParts {
  /** Runs doctor's checks; with `isLive` it sends small model requests. */
  readonly check: (isLive: boolean) => Promise<HealthAnswer>;
  readonly store: () => Promise<StoreAnswer>;
}

export function healthRoutes({ check, store }: HealthParts): readonly UiRoute[] {
  let running: Promise<HealthAnswer> | undefined;
  const once = (isLive: boolean): Promise<ApiAnswer> => {
    // If two pages ask at the same time, they share one run of the checks.
    if (isLive) return check(true);
    running ??= check(false).finally(() => {
      running = undefined;
    });
    return running;
  };
  return [
    ['GET health', () => once(false)],
    ['POST live', () => once(true)],
    ['GET store', () => store()],
  ];
}
