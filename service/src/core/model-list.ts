import type { ListedModel } from './routing.ts';
import { isoTime } from '../../../src/core/memory/times.ts';

/** The list of models in the forms of the two APIs. It is made from what is stored: no provider is asked. */

export interface ListForm {
  /** Undefined: the whole list. */
  readonly id: string | undefined;
  readonly isAnthropic: boolean;
}

/** Undefined where the model of `id` is not among them. */
export function modelListBody(
  models: readonly ListedModel[],
  { id, isAnthropic }: ListForm,
): object | undefined {
  const form = isAnthropic ? anthropicModel : openAiModel;
  if (id !== undefined) {
    const found = models.find(({ model }) => model === id);
    return found === undefined ? undefined : form(found);
  }
  const data = models.map(form);
  if (!isAnthropic) return { object: 'list', data };
  const [first, last] = [models[0]?.model ?? null, models.at(-1)?.model ?? null];
  return { data, has_more: false, first_id: first, last_id: last };
}

function openAiModel({ model, owner, createdAt }: ListedModel): object {
  return { id: model, object: 'model', created: Math.floor(createdAt / 1000), owned_by: owner };
}

function anthropicModel({ model, createdAt }: ListedModel): object {
  return { type: 'model', id: model, display_name: model, created_at: isoTime(createdAt) };
}
