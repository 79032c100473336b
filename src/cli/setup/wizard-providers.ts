import {
  type Found,
  isRoutable,
  type Provider,
  searchProviders,
} from '../../core/settings/catalog.ts';
import { hasLogin } from '../../adapters/foreign/client-logins.ts';
import { type Login, type LoginFacts, LOGINS } from '../../core/http/logins.ts';
import { upstreamNames } from '../../core/settings/config-draft.ts';
import { wellKnown } from '../../core/settings/well-known.ts';
import type { Answers } from './wizard-answers.ts';

/** The choices of the wizard's search for a provider. */

/** Values of the choices that are no provider's id. */
export const CUSTOM = '';
export const NONE = '-';
const LOGIN = 'login:';

/** The login that a chosen value means; undefined for a provider. */
export function loginIn(value: string): LoginFacts | undefined {
  return Object.values(LOGINS).find(({ login }) => value === `${LOGIN}${login}`);
}

export interface Choice {
  readonly value: string;
  readonly name: string;
  readonly description: string;
  readonly disabled?: string;
}

const OTHER: Choice = {
  value: CUSTOM,
  name: 'Another provider, or a gateway',
  description: 'any endpoint with one of the three API styles; you give its URL',
};

const BACK: Choice = { value: NONE, name: 'None: continue without a provider', description: '' };

/** First the providers of the file, then those whose key is set and logins, then all of the catalog. */
export function providerChoices(term: string, answers: Answers): readonly Choice[] {
  const found = searchProviders(answers.dependencies.catalog.providers(), term);
  const isAtHand = ({ provider }: Found): boolean => keysSet(provider, answers).length > 0;
  const near = found.filter((one) => isRoutable(one.provider) && isAtHand(one));
  const rest = found.filter((one) => !near.includes(one));
  const own = ownEntries(term, answers);
  const logins = loginChoices(term, answers);
  const keyed = near.map((one) => choiceOf(one, answers));
  const others = rest.map((one) => choiceOf(one, answers));
  if (term.trim() !== '') return [...own, ...keyed, ...others, ...logins, OTHER, BACK];
  // Two hundred names are between the well-known ones and the end of the list.
  const known = others.filter(({ value }) => wellKnown(value) !== undefined);
  const unknown = others.filter((one) => !known.includes(one));
  return [...own, ...keyed, ...logins, ...known, OTHER, BACK, ...unknown];
}

function loginChoices(term: string, { context }: Answers): readonly Choice[] {
  const choiceFor = ({ login, client }: LoginFacts): Choice => {
    const mark = hasLogin(context.environment, login) ? ' (you are logged in)' : '';
    const name = `${PLANS[login]}: the login of ${client}${mark}`;
    return {
      value: `${LOGIN}${login}`,
      name,
      description: 'svc passes the login on and stores nothing of it',
    };
  };
  const words = term.toLowerCase().split(/\s+/).filter(Boolean);
  return Object.values(LOGINS)
    .map(choiceFor)
    .filter(({ name }) => words.every((word) => name.toLowerCase().includes(word)));
}

const PLANS: Readonly<Record<Login, string>> = {
  claude: 'Claude subscription',
  codex: 'ChatGPT subscription',
};

/** Names of the file that no catalog has. */
function ownEntries(term: string, { draft, dependencies }: Answers): readonly Choice[] {
  const listed = new Set(dependencies.catalog.providers().map(({ id }) => id));
  return upstreamNames(draft)
    .filter((name) => !listed.has(name) && name.includes(term.trim().toLowerCase()))
    .map((name) => ({ value: name, name: `${name} (configured)`, description: 'your own entry' }));
}

function choiceOf({ provider, model }: Found, answers: Answers): Choice {
  const { id, name, baseUrl } = provider;
  const marks = [
    ...(upstreamNames(answers.draft).includes(id) ? ['configured'] : []),
    ...keysSet(provider, answers).map((variable) => `$${variable} is set`),
    ...(model === undefined ? [] : [`has ${model}`]),
  ];
  const title = name.toLowerCase() === id ? id : `${id}, ${name}`;
  const label = marks.length === 0 ? title : `${title} (${marks.join(', ')})`;
  const choice = { value: id, name: label, description: baseUrl ?? '' };
  return isRoutable(provider) ? choice : { ...choice, disabled: whyNot(provider) };
}

function whyNot({ baseUrl }: Provider): string {
  const lacks = baseUrl === undefined ? 'no address' : 'no variable for its key';
  return `(discovery only: it publishes ${lacks}; describe it as another provider)`;
}

function keysSet({ keyEnvs }: Provider, { context }: Answers): readonly string[] {
  return keyEnvs.filter((name) => Boolean(context.environment[name]));
}
