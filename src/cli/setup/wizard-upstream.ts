import confirm from '@inquirer/confirm';
import input from '@inquirer/input';
import search from '@inquirer/search';
import select from '@inquirer/select';
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
import { DIALECTS, type Dialect } from '../../core/conversation/dialect.ts';
import { DIALECT_DESCRIPTORS } from '../../core/dialects/dialects.ts';
import { askKey } from './wizard-key.ts';
import { CUSTOM, NONE, providerChoices } from './wizard-providers.ts';
import type { Scene } from './wizard-scene.ts';

/** The wizard's questions about one provider: which, where, what it speaks, and its key. */

/** Empty when the person thought better of it. One upstream for each API style of the provider. */
export async function askUpstreams(scene: Scene): Promise<readonly UpstreamDraft[]> {
  const name = await search(
    {
      message: 'Which provider? (type to search: a name, a model, an address)',
      source: (term) => providerChoices(term ?? '', scene),
      pageSize: 12,
    },
    scene.parts.streams,
  );
  if (name === NONE) return [];
  const wanted = name === CUSTOM ? [await askCustom(scene)] : await listedUpstreams(name, scene);
  const upstreams = await withoutOccupied(wanted, scene);
  if (upstreams.length === 0) return [];
  return askKey(upstreams, scene);
}

async function listedUpstreams(name: string, scene: Scene): Promise<readonly UpstreamDraft[]> {
  const { draft, parts } = scene;
  const existing = DIALECTS.filter((style) => existingUpstream(draft, name, style) !== undefined);
  if (existing.length > 0) return existing.map((apiStyle) => ({ name, apiStyle }));
  const provider = parts.catalog.providers().find(({ id }) => id === name);
  if (provider?.baseUrl === undefined) return [];
  const { baseUrl, apiStyles } = provider;
  if (apiStyles.length > 0) return draftsOf(name, { ...provider, baseUrl }, {});
  const apiStyle = await askStyle(scene);
  const described = { ...provider, baseUrl, apiStyles: [apiStyle], auth: defaultAuth(apiStyle) };
  return draftsOf(name, described, {});
}

async function askStyle({ parts: { streams } }: Scene): Promise<Dialect> {
  return select(
    {
      message: 'What does it speak?',
      choices: DIALECT_DESCRIPTORS.map(({ name, title, speakers }) => {
        return { value: name, name: `${title}: ${speakers}` };
      }),
    },
    streams,
  );
}

async function askCustom(scene: Scene): Promise<UpstreamDraft> {
  const { streams } = scene.parts;
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
  const apiStyle = await askStyle(scene);
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
