import {
  draftsOf,
  existingUpstream,
  occupantOf,
  putUpstream,
  type UpstreamDraft,
  upstreamNames,
} from '../../core/settings/config-draft.ts';
import {
  AUTHS,
  defaultAuth,
  parseBaseUrl,
  UPSTREAM_NAME,
} from '../../core/settings/config-upstreams.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { DIALECTS } from '../../core/dialects/apis.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import { type Login, type LoginFacts, LOGINS } from '../../core/http/logins.ts';
import { LOGIN_RISK, loginQuestion, loginUpstream } from './setup.ts';
import type { Choice } from './wizard-prompts.ts';
import { type Answers, askNext, askSecret, type Next, noteUnset } from './wizard-answers.ts';
import { parseUpstream } from '../../core/settings/config-schema.ts';
import { problemText } from '../../core/settings/config-values.ts';
import { checkKey } from '../doctor/key-check.ts';
import {
  type Found,
  isRoutable,
  type Provider,
  searchProviders,
  wellKnown,
} from '../../core/settings/catalog.ts';
import { hasLogin } from '../../adapters/foreign/client-files.ts';

/** The wizard's questions about a provider: which one, its address, dialects and key; or a client's login or hooks. */

/** What the user chose: a provider, hooks of a client, or nothing. */
export interface Provided {
  /** One upstream for each API style of the provider; empty without a provider. */
  readonly upstreams: readonly UpstreamDraft[];
  /** The client that gets its memories through its hooks. Its login never reaches svc. */
  readonly hooked?: Login;
}

/**
 * Asks for a provider. Returns undefined if nothing is left to write: the user went back, or declined the login, the
 * key or every replacement.
 */
export async function askUpstreams(answers: Answers): Promise<Provided | undefined> {
  const name = await answers.prompts.search({
    message: 'Which provider? (type to search)',
    source: (term) => providerChoices(term, answers),
    pageSize: 12,
  });
  if (name === NONE) return { upstreams: [] };
  const login = loginIn(name);
  if (login !== undefined && (await prefersHooks(login, answers))) {
    return { upstreams: [], hooked: login.login };
  }
  const wanted =
    login !== undefined
      ? [loginUpstream(login)]
      : name === CUSTOM
        ? [await askCustom(answers)]
        : await listedUpstreams(name, answers);
  const upstreams = await withoutOccupied(wanted, answers);
  if (upstreams.length === 0) return undefined;
  const chosen =
    login === undefined
      ? await askKey(upstreams, answers)
      : await askLogin(login, upstreams, answers);
  return chosen.length === 0 ? undefined : { upstreams: chosen };
}

/** Asks whether a client with a login should use its hooks instead of the proxy. It gets memory either way. */
async function prefersHooks({ client }: LoginFacts, { prompts }: Answers): Promise<boolean> {
  return prompts.select({
    message: `How should ${client} get its memories?`,
    choices: [
      {
        value: true,
        name: `Through its own hooks: its login never reaches svc`,
        description: `${client} runs svc at its events. svc shortens no requests, and shows no requests, costs or quota.`,
      },
      {
        value: false,
        name: 'Through the proxy: svc passes its login on',
        description: 'svc also shortens requests, and shows requests, costs and quota.',
      },
    ],
  });
}

/** Prints the risk of a login, and asks whether svc should forward it. The default answer is no. */
async function askLogin(
  login: LoginFacts,
  upstreams: readonly UpstreamDraft[],
  { context, prompts }: Answers,
): Promise<readonly UpstreamDraft[]> {
  for (const line of LOGIN_RISK) context.terminal.note(line);
  const question = { message: loginQuestion(login), default: false };
  return (await prompts.confirm(question)) ? upstreams : [];
}

async function listedUpstreams(name: string, answers: Answers): Promise<readonly UpstreamDraft[]> {
  const { draft, dependencies } = answers;
  const existing = DIALECTS.filter((style) => existingUpstream(draft, name, style) !== undefined);
  if (existing.length > 0) return existing.map((apiStyle) => ({ name, apiStyle }));
  const provider = dependencies.catalog.providers().find(({ id }) => id === name);
  if (provider?.baseUrl === undefined) return [];
  const { baseUrl, apiStyles } = provider;
  if (apiStyles.length > 0) return draftsOf(name, { ...provider, baseUrl }, {});
  const apiStyle = await askStyle(answers);
  const described = { ...provider, baseUrl, apiStyles: [apiStyle], auth: defaultAuth(apiStyle) };
  return draftsOf(name, described, {});
}

async function askStyle({ prompts }: Answers): Promise<Dialect> {
  return prompts.select({
    message: 'Which API does it serve?',
    choices: DIALECT_DESCRIPTORS.map(({ name, title, speakers }) => {
      return { value: name, name: `${title}: ${speakers}` };
    }),
  });
}

async function askCustom(answers: Answers): Promise<UpstreamDraft> {
  const { prompts } = answers;
  const name = await prompts.input({
    message: 'A name for it in svc:',
    validate: (text) => UPSTREAM_NAME.test(text) || 'Up to 40 lower-case letters, digits, - and _.',
  });
  const baseUrl = await prompts.input({
    message: 'Its base URL, from its documentation for clients:',
    validate: (text) => {
      const parsed = parseBaseUrl(text, true);
      return 'allowed' in parsed ? `Expected ${parsed.allowed}.` : true;
    },
  });
  const apiStyle = await askStyle(answers);
  const isPlain = 'allowed' in parseBaseUrl(baseUrl, false);
  const message = isPlain
    ? 'This address is not https. Allow http for this provider, on this machine and its network?'
    : 'Is it on this machine or in a private network?';
  const allowPrivate = await prompts.confirm({ message, default: isPlain });
  const auth = await prompts.select({
    message: 'How should svc send its key?',
    default: defaultAuth(apiStyle),
    choices: AUTHS.map((value) => ({ value, name: AUTH_WORDS[value] })),
  });
  return { name, apiStyle, baseUrl, auth, ...(allowPrivate ? { allowPrivate } : {}) };
}

const AUTH_WORDS = {
  'x-api-key': 'in the header x-api-key',
  bearer: 'as Authorization: Bearer',
  none: 'it needs none',
} as const;

/**
 * Returns the upstreams to write. An API style has only one upstream, so the user must agree to each replacement;
 * otherwise the new upstream is left out.
 */
async function withoutOccupied(
  wanted: readonly UpstreamDraft[],
  answers: Answers,
): Promise<readonly UpstreamDraft[]> {
  const kept: UpstreamDraft[] = [];
  for (const upstream of wanted) {
    const occupant = occupantOf(answers.draft, upstream);
    const message = `${occupant} already serves ${upstream.apiStyle}. Replace it by ${upstream.name}?`;
    const isFree =
      occupant === undefined || (await answers.prompts.confirm({ message, default: false }));
    if (isFree) kept.push(upstream);
  }
  return kept;
}

/** Asks for a provider's key, and tests it. The terminal does not show the key while the user types it. */
async function askKey(
  upstreams: readonly UpstreamDraft[],
  answers: Answers,
): Promise<readonly UpstreamDraft[]> {
  for (;;) {
    const keyed = await withKey(upstreams, answers);
    // The other upstreams of a provider have the same key and host.
    const [first] = keyed;
    if (first === undefined) return [];
    const next = await judge(first, answers);
    if (next === 'keep') return keyed;
    if (next === 'leave') return [];
  }
}

/**
 * Asks for a provider's key, unless none of the upstreams needs one. Returns the upstreams, with the key if the user
 * gave a new one; none if the user went back.
 */
async function withKey(
  upstreams: readonly UpstreamDraft[],
  answers: Answers,
): Promise<readonly UpstreamDraft[]> {
  const [first] = upstreams;
  if (first === undefined) return [];
  if (upstreams.every((upstream) => authOf(upstream, answers) === 'none')) return upstreams;
  const { name, apiStyle } = first;
  const provider = answers.dependencies.catalog.providers().find(({ id }) => id === name);
  const question = {
    message: `Where is the key of ${name}?`,
    direct: `The key of ${name}:`,
    stored: existingUpstream(answers.draft, name, apiStyle)?.['providerKey'],
    offered: provider?.keyEnvs ?? [],
  };
  const answer = await askSecret(question, answers);
  if (answer.kind === 'back') return [];
  if (answer.kind === 'keep') return upstreams;
  return upstreams.map((upstream) => ({ ...upstream, providerKey: answer.key }));
}

function authOf({ name, apiStyle, auth }: UpstreamDraft, { draft }: Answers): unknown {
  return auth ?? existingUpstream(draft, name, apiStyle)?.['auth'];
}

/**
 * Tests the key of an upstream, and asks what to do if it is not accepted. A key whose variable is not set here is kept
 * without a test.
 */
async function judge(draft: UpstreamDraft, answers: Answers): Promise<Next> {
  const { context, dependencies } = answers;
  const { name, apiStyle } = draft;
  // Validate only this entry, as it would be in the file.
  const entry = existingUpstream(putUpstream(answers.draft, draft), name, apiStyle);
  const { upstream, problems } = parseUpstream(entry, context.environment);
  const leave = 'Skip this provider';
  if (upstream !== undefined) {
    const { host } = new URL(upstream.baseUrl);
    context.terminal.note(`Testing the key: asking ${host} for its models …`);
    const checked = await checkKey(upstream, dependencies.openUpstream);
    return askNext({ who: name, ...checked, leave }, answers);
  }
  if (problems.every(({ isUnset }) => isUnset === true)) {
    noteUnset(answers);
    return 'keep';
  }
  const found = problems.map(problemText).join('; ');
  return askNext({ who: name, state: 'unknown', found, leave }, answers);
}

/** The values of choices that are not the id of a provider. LOGIN is followed by the name of a login. */
const CUSTOM = '';
const NONE = '-';
const LOGIN = 'login:';

/** Returns the login of a choice; undefined if the choice is a provider. */
function loginIn(value: string): LoginFacts | undefined {
  return Object.values(LOGINS).find(({ login }) => value === `${LOGIN}${login}`);
}

const OTHER = {
  value: CUSTOM,
  name: 'Another provider, or a gateway',
  description: 'any endpoint with one of the three API styles; you give its URL',
};

/** Typed words that put the choice OTHER before what the catalog finds for them. */
const OTHER_WORDS = ['another', 'other', 'custom', 'own', 'gateway', 'local', 'url', 'self-hosted'];
/** Fewest typed letters that count as the beginning of such a word. Fewer may begin the name of a provider. */
const OTHER_CHARS_MIN = 4;

function isOther(term: string): boolean {
  return OTHER_WORDS.some(
    (word) => word === term || (term.length >= OTHER_CHARS_MIN && word.startsWith(term)),
  );
}

const BACK = { value: NONE, name: 'None: continue without a provider', description: '' };

/**
 * Returns the choices for the typed text: providers of the file and of the catalog, logins, OTHER and BACK. What the
 * user most likely wants comes first.
 */
function providerChoices(term: string, answers: Answers): readonly Choice<string>[] {
  const found = searchProviders(answers.dependencies.catalog.providers(), term);
  const isAtHand = ({ provider }: Found): boolean => keysSet(provider, answers).length > 0;
  const near = found.filter((one) => isRoutable(one.provider) && isAtHand(one));
  const rest = found.filter((one) => !near.includes(one));
  const own = ownEntries(term, answers);
  const logins = loginChoices(term, answers);
  const keyed = near.map((one) => choiceOf(one, answers));
  const others = rest.map((one) => choiceOf(one, answers));
  if (isOther(term.trim().toLowerCase()))
    return [...own, OTHER, ...keyed, ...others, ...logins, BACK];
  if (term.trim() !== '') return [...own, ...keyed, ...others, ...logins, OTHER, BACK];
  // The catalog has some two hundred providers, so the well-known ones come first.
  const known = others.filter(({ value }) => wellKnown(value) !== undefined);
  const unknown = others.filter((one) => !known.includes(one));
  return [...own, ...keyed, ...logins, ...known, OTHER, BACK, ...unknown];
}

function loginChoices(term: string, { context }: Answers) {
  const description = 'svc passes the login on and stores nothing of it';
  const choiceFor = ({ login, client }: LoginFacts) => {
    const mark = hasLogin(context.environment, login) ? ' (you are logged in)' : '';
    const name = `${PLANS[login]}: the login of ${client}${mark}`;
    return { value: `${LOGIN}${login}`, name, description };
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

/** Returns the file's providers that the catalog does not have, if their names contain the typed text. */
function ownEntries(term: string, { draft, dependencies }: Answers) {
  const listed = new Set(dependencies.catalog.providers().map(({ id }) => id));
  return upstreamNames(draft)
    .filter((name) => !listed.has(name) && name.includes(term.trim().toLowerCase()))
    .map((name) => ({ value: name, name: `${name} (configured)`, description: 'your own entry' }));
}

function choiceOf({ provider, model }: Found, answers: Answers): Choice<string> {
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
