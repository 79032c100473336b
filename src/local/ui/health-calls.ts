import type { HealthAnswer, StoreAnswer } from '../../ports/ui-api.ts';
import type { ApiAnswer, UiRoute } from './ui-routes.ts';

/** What the calls of the health view need. `POST live` costs money; the page sends it only after a click. */
interface HealthParts {
  /** Runs the checks of `svc doctor`. `isLive`: also sends small model requests. */
  readonly check: (isLive: boolean) => Promise<HealthAnswer>;
  readonly store: () => Promise<StoreAnswer>;
}

export function healthRoutes({ check, store }: HealthParts): readonly UiRoute[] {
  let running: Promise<HealthAnswer> | undefined;
  const once = (isLive: boolean): Promise<ApiAnswer> => {
    if (isLive) return check(true);
    // Pages that ask at the same time share one run of the checks.
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
