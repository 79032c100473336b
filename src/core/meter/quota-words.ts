/** Describes the windows of a subscription's plan in words. The page runs this code too, so it uses nothing of Node. */

/** The window of a plan that was full when the provider refused a request. */
export interface PlanLimit {
  readonly window: string;
  readonly resetAt?: number;
}

export function windowText(name: string): string {
  const [, count = '', unit = '', of = ''] = /^(\d{1,3})(h|d)(?:[_ ](.{1,40}))?$/.exec(name) ?? [];
  if (unit === '') return `window ${name}`;
  const length =
    unit === 'h' ? `${count}-hour window` : count === '7' ? 'weekly window' : `${count}-day window`;
  return of === '' ? length : `${length} of one kind of model (${of})`;
}

/** Says whether a window counts only requests to some models. */
function isOfModel(name: string): boolean {
  return /[_ ]/.test(name);
}

export function planLimitText({ window, resetAt }: PlanLimit, model: string): string {
  const until =
    resetAt === undefined
      ? ''
      : `; it resets at ${new Date(resetAt).toLocaleString('sv').slice(0, 16)}`;
  const others = isOfModel(window) ? ' Other models may still be allowed.' : '';
  return `the ${windowText(window)} is used up for ${model === '' ? 'this model' : model}${until}.${others}`;
}
