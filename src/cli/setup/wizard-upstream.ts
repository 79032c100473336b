import {
  draftsOf,
  existingUpstream,
  occupantOf,
  type UpstreamDraft,
} from '../../core/settings/config-draft.ts';
import {
  AUTHS,
  defaultAuth,
  parseBaseUrl,
  UPSTREAM_NAME,
} from '../../core/settings/config-upstreams.ts';
import { DIALECTS, type Dialect } from '../../core/conversation/view.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import type { LoginFacts } from '../../core/http/logins.ts';
import { LOGIN_RISK, loginQuestion, loginUpstream } from './setup-login.ts';
import { askKey } from './wizard-key.ts';
import { CUSTOM, loginIn, NONE, providerChoices } from './wizard-providers.ts';
import type { Answers } from './wizard-answers.ts';
import { confirm, input, search, select } from './wizard-prompts.ts';

/** The wizard's questions about one provider: which, where, what it speaks, and its key. */

/**
 * One upstream for each API style of the provider; none if the person continues without. Undefined: the
 * person went back.
 */
export async function askUpstreams(
  answers: Answers,
): Promise<readonly UpstreamDraft[] | undefined> {
  const name = await search(
    {
      message: 'Which provider? (type to search)',
      source: (term) => providerChoices(term, answers),
      pageSize: 12,
    },
    answers.dependencies.streams,
  );
  if (name === NONE) return [];
  const login = loginIn(name);
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
  return chosen.length === 0 ? undefined : chosen;
}

/** A person turns a login on knowingly: the risk is stated first, and Enter alone says no. */
async function askLogin(
  login: LoginFacts,
  upstreams: readonly UpstreamDraft[],
  { context, dependencies }: Answers,
): Promise<readonly UpstreamDraft[]> {
  for (const line of LOGIN_RISK) context.terminal.note(line);
  const question = { message: loginQuestion(login), default: false };
  return (await confirm(question, dependencies.streams)) ? upstreams : [];
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

async function askStyle({ dependencies: { streams } }: Answers): Promise<Dialect> {
  return select(
    {
      message: 'Which API does it serve?',
      choices: DIALECT_DESCRIPTORS.map(({ name, title, speakers }) => {
        return { value: name, name: `${title}: ${speakers}` };
      }),
    },
    streams,
  );
}

async function askCustom(answers: Answers): Promise<UpstreamDraft> {
  const { streams } = answers.dependencies;
  const name = await input(
    {
      message: 'A name for it in svc:',
      validate: (text) =>
        UPSTREAM_NAME.test(text) || 'Up to 40 lower-case letters, digits, - and _.',
    },
    streams,
  );
  const baseUrl = await input(
    {
      message: 'Its base URL, from its documentation for clients:',
      validate: (text) => {
        const parsed = parseBaseUrl(text, true);
        return 'allowed' in parsed ? `Expected ${parsed.allowed}.` : true;
      },
    },
    streams,
  );
  const apiStyle = await askStyle(answers);
  const isPlain = 'allowed' in parseBaseUrl(baseUrl, false);
  const message = isPlain
    ? 'This address is not https. Allow http for this provider, on this machine and its network?'
    : 'Is it on this machine or in a private network?';
  const allowPrivate = await confirm({ message, default: isPlain }, streams);
  const auth = await select(
    {
      message: 'How should svc send its key?',
      default: defaultAuth(apiStyle),
      choices: AUTHS.map((value) => ({ value, name: AUTH_WORDS[value] })),
    },
    streams,
  );
  return { name, apiStyle, baseUrl, auth, ...(allowPrivate ? { allowPrivate } : {}) };
}

const AUTH_WORDS = {
  'x-api-key': 'in the header x-api-key',
  bearer: 'as Authorization: Bearer',
  none: 'it needs none',
} as const;

/** There is one upstream for each API style: taking another's place is asked for. */
async function withoutOccupied(
  wanted: readonly UpstreamDraft[],
  answers: Answers,
): Promise<readonly UpstreamDraft[]> {
  const kept: UpstreamDraft[] = [];
  for (const upstream of wanted) {
    const occupant = occupantOf(answers.draft, upstream);
    const message = `${occupant} already serves ${upstream.apiStyle}. Replace it by ${upstream.name}?`;
    const isFree =
      occupant === undefined ||
      (await confirm({ message, default: false }, answers.dependencies.streams));
    if (isFree) kept.push(upstream);
  }
  return kept;
}
