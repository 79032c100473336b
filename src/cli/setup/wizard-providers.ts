import {
  type Found,
  isRoutable,
  type Provider,
  searchProviders,
} from '../../core/settings/catalog.ts';
import { upstreamNames } from '../../core/settings/config-draft.ts';
import { wellKnown } from '../../core/settings/well-known.ts';
import type { Scene } from './wizard-scene.ts';

/** The choices of the wizard's search for a provider. */

/** Values of the choices that are no provider's id. */
export const CUSTOM = '';
export const NONE = '-';

export interface Choice {
  readonly value: string;
  readonly name: string;
  readonly description: string;
  readonly disabled?: string;
}

const OTHER: Choice = {
  value: CUSTOM,
  name: 'Another provider, or a gateway',
  description: 'any endpoint that speaks one of the three API styles: give its URL',
};

const BACK: Choice = { value: NONE, name: 'None: go on without', description: '' };

/** First the providers of the file, then those whose key is set, then all of the catalog. */
export function providerChoices(term: string, scene: Scene): readonly Choice[] {
  const found = searchProviders(scene.parts.catalog.providers(), term);
  const isAtHand = ({ provider }: Found): boolean => keysSet(provider, scene).length > 0;
  const near = found.filter((one) => isRoutable(one.provider) && isAtHand(one));
  const rest = found.filter((one) => !near.includes(one));
  const choices = [...near, ...rest].map((one) => choiceOf(one, scene));
  const own = ownEntries(term, scene);
  if (term.trim() !== '') return [...own, ...choices, OTHER, BACK];
  // Two hundred names stand between the well-known ones and the end of the list.
  const isKnown = ({ value }: Choice): boolean => wellKnown(value) !== undefined;
  const first = choices.filter(
    (one) => isKnown(one) || near.some((it) => it.provider.id === one.value),
  );
  const others = choices.filter((one) => !first.includes(one));
  return [...own, ...first, OTHER, BACK, ...others];
}

/** Names of the file that no catalog has. */
function ownEntries(term: string, { draft, parts }: Scene): readonly Choice[] {
  const listed = new Set(parts.catalog.providers().map(({ id }) => id));
  return upstreamNames(draft)
    .filter((name) => !listed.has(name) && name.includes(term.trim().toLowerCase()))
    .map((name) => ({ value: name, name: `${name} (configured)`, description: 'your own entry' }));
}

function choiceOf({ provider, model }: Found, scene: Scene): Choice {
  const { id, name, baseUrl } = provider;
  const marks = [
    ...(upstreamNames(scene.draft).includes(id) ? ['configured'] : []),
    ...keysSet(provider, scene).map((variable) => `$${variable} is set`),
    ...(model === undefined ? [] : [`has ${model}`]),
  ];
  const title = name.toLowerCase() === id ? id : `${id}, ${name}`;
  const label = marks.length === 0 ? title : `${title} (${marks.join(', ')})`;
  const choice = { value: id, name: label, description: baseUrl ?? '' };
  return isRoutable(provider) ? choice : { ...choice, disabled: whyNot(provider) };
}

function whyNot({ baseUrl }: Provider): string {
  const lacks = baseUrl === undefined ? 'no address' : 'no variable for its key';
  return `(discovery only: ${lacks} is published; give it as another provider)`;
}

function keysSet({ keyEnvs }: Provider, { context }: Scene): readonly string[] {
  return keyEnvs.filter((name) => Boolean(context.environment[name]));
}
