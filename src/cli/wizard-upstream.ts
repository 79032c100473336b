import confirm from '@inquirer/confirm';
import input from '@inquirer/input';
import search from '@inquirer/search';
import select from '@inquirer/select';
import {
  draftsOf,
  existingUpstream,
  occupantOf,
  type UpstreamDraft,
  upstreamNames,
} from '../core/config-draft.ts';
import { AUTHS, defaultAuth, parseBaseUrl, UPSTREAM_NAME } from '../core/config-upstreams.ts';
import { DIALECTS, type Dialect } from '../core/dialect.ts';
import { WELL_KNOWN, WELL_KNOWN_NAMES, wellKnown } from '../core/well-known.ts';
import { askKey } from './wizard-key.ts';
import type { Scene } from './wizard.ts';

/** The wizard's questions about one provider: which, where, what it speaks, and its key. */

const CUSTOM = '';

/** Empty when the person thought better of it. One upstream for each API style of the provider. */
export async function askUpstreams(scene: Scene): Promise<readonly UpstreamDraft[]> {
  const name = await search(
    {
      message: 'Which provider? (type to search)',
      source: (term) => choicesFor(term ?? '', scene),
      pageSize: 12,
    },
    scene.parts.streams,
  );
  const wanted = name === CUSTOM ? [await askCustom(scene)] : knownUpstreams(name, scene);
  const upstreams = await withoutOccupied(wanted, scene);
  if (upstreams.length === 0) return [];
  return askKey(upstreams, scene);
}

interface Choice {
  readonly value: string;
  readonly name: string;
  readonly description: string;
}

function choicesFor(term: string, { draft, context }: Scene): readonly Choice[] {
  const configured = upstreamNames(draft);
  const own = configured.filter((name) => wellKnown(name) === undefined);
  const isKeySet = (name: string): boolean =>
    Boolean(context.environment[wellKnown(name)?.keyEnv ?? '']);
  // The ones whose key is at hand come first.
  const known = [
    ...WELL_KNOWN_NAMES.filter(isKeySet),
    ...WELL_KNOWN_NAMES.filter((name) => !isKeySet(name)),
  ];
  const choices = [...known, ...own].map((name): Choice => {
    const facts = WELL_KNOWN[name];
    const marks = [
      ...(configured.includes(name) ? ['configured'] : []),
      ...(facts !== undefined && isKeySet(name) ? [`$${facts.keyEnv} is set`] : []),
    ];
    const label = marks.length === 0 ? name : `${name} (${marks.join(', ')})`;
    return { value: name, name: label, description: facts?.baseUrl ?? 'your own entry' };
  });
  const words = term.trim().toLowerCase();
  const found = choices.filter(({ name, description }) =>
    `${name} ${description}`.toLowerCase().includes(words),
  );
  const description = 'any endpoint that speaks one of the three API styles: give its URL';
  return [...found, { value: CUSTOM, name: 'Another provider, or a gateway', description }];
}

function knownUpstreams(name: string, { draft }: Scene): readonly UpstreamDraft[] {
  const existing = DIALECTS.filter((style) => existingUpstream(draft, name, style) !== undefined);
  if (existing.length > 0) return existing.map((apiStyle) => ({ name, apiStyle }));
  const known = wellKnown(name);
  return known === undefined ? [] : draftsOf(name, known, {});
}

const STYLE_WORDS: Readonly<Record<Dialect, string>> = {
  anthropic_messages: 'Anthropic Messages: Claude Code and Anthropic SDKs speak it',
  openai_responses: 'OpenAI Responses: Codex speaks it',
  openai_chat_completions: 'OpenAI Chat Completions: most gateways and local servers',
};

async function askCustom({ parts: { streams } }: Scene): Promise<UpstreamDraft> {
  const name = await input(
    {
      message: 'What shall it be called?',
      validate: (text) =>
        UPSTREAM_NAME.test(text) || 'Up to 40 lower-case letters, digits, - and _.',
    },
    streams,
  );
  const baseUrl = await input(
    {
      message: 'Its base URL, as its documentation gives it to clients:',
      validate: (text) => {
        const parsed = parseBaseUrl(text, true);
        return 'allowed' in parsed ? `Expected ${parsed.allowed}.` : true;
      },
    },
    streams,
  );
  const apiStyle = await select(
    {
      message: 'What does it speak?',
      choices: DIALECTS.map((value) => ({ value, name: STYLE_WORDS[value] })),
    },
    streams,
  );
  const isPlain = 'allowed' in parseBaseUrl(baseUrl, false);
  const message = isPlain
    ? 'This address is not https. Allow http to this machine and its network for it?'
    : 'Is it on this machine or in a private network?';
  const allowPrivate = await confirm({ message, default: isPlain }, streams);
  const auth = await select(
    {
      message: 'How does it take its key?',
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
  scene: Scene,
): Promise<readonly UpstreamDraft[]> {
  const kept: UpstreamDraft[] = [];
  for (const upstream of wanted) {
    const occupant = occupantOf(scene.draft, upstream);
    const message = `${occupant} speaks ${upstream.apiStyle} already. Put ${upstream.name} in its place?`;
    const isFree =
      occupant === undefined || (await confirm({ message, default: false }, scene.parts.streams));
    if (isFree) kept.push(upstream);
  }
  return kept;
}
