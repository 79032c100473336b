import type { Usage } from '../dialects/answer.ts';
import type { Price } from '../shortening/meter.ts';
import { factsOfModel } from './model-facts.ts';

/**
 * Turns metered prices into US dollars, by the published list price of a model: input, with the
 * provider's cache counted, and answers. It is no bill: discounts, tiers and taxes are not in it.
 */
export interface Money {
  readonly paid: number;
  /** The price of the same requests without svc, by the meter's model. */
  readonly direct: number;
}

const MILLION = 1_000_000;

/** Undefined for a model without a list price. `price` is in input tokens at full price. */
export function moneyOf(
  model: string,
  price: Price,
  { output }: Pick<Usage, 'output'>,
): Money | undefined {
  const list = factsOfModel(model)?.price;
  if (list === undefined) return undefined;
  const answers = (output * list.output) / MILLION;
  return {
    paid: (price.paid * list.input) / MILLION + answers,
    direct: (price.direct * list.input) / MILLION + answers,
  };
}
