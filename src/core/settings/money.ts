import type { Usage } from '../dialects/dialect-answer.ts';
import type { Price } from '../shortening/meter.ts';
import { factsOfModel } from './model-facts.ts';

/**
 * Converts metered prices into US dollars by a model's published list price, with the provider's cache counted. It
 * is no bill: discounts, priority and taxes are missing. `price` includes the surcharge of a long request.
 */
export interface Money {
  readonly paid: number;
  /** The estimated price of the same requests without svc. */
  readonly direct: number;
}

const MILLION = 1_000_000;

/**
 * Returns the cost in dollars, input and output; undefined for a model without a list price. `price`: the cost of the
 * input, as the number of full-price input tokens that cost the same.
 */
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
