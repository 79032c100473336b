import input from '@inquirer/input';
import password from '@inquirer/password';
import select from '@inquirer/select';
import { existingUpstream, putUpstream, type UpstreamDraft } from '../core/config-draft.ts';
import { parseConfig } from '../core/config-schema.ts';
import { isCredential, isEnvironmentName, problemText } from '../core/config-values.ts';
import type { Credential, UpstreamSettings } from '../core/settings.ts';
import { wellKnown } from '../core/well-known.ts';
import { checkKey, type KeyCheck } from './key-check.ts';
import { maskedKey } from './wizard-summary.ts';
import type { Scene } from './wizard.ts';

/** The key of one provider, and whether the provider takes it. What is typed is never shown. */
export async function askKey(
  upstreams: readonly UpstreamDraft[],
  scene: Scene,
): Promise<readonly UpstreamDraft[]> {
  for (;;) {
    const keyed = await withKey(upstreams, scene);
    const next = await judge(keyed, scene);
    if (next === 'keep') return keyed;
    if (next === 'leave') return [];
  }
}

async function withKey(
  upstreams: readonly UpstreamDraft[],
  scene: Scene,
): Promise<readonly UpstreamDraft[]> {
  if (upstreams.every((upstream) => authOf(upstream, scene) === 'none')) return upstreams;
  const providerKey = await askSource(upstreams, scene);
  if (providerKey === undefined) return upstreams;
  return upstreams.map((upstream) => ({ ...upstream, providerKey }));
}

function authOf({ name, apiStyle, auth }: UpstreamDraft, { draft }: Scene): unknown {
  return auth ?? existingUpstream(draft, name, apiStyle)?.['auth'];
}

/** Undefined: the key that the file has stays. */
async function askSource(
  [upstream]: readonly UpstreamDraft[],
  scene: Scene,
): Promise<Credential | undefined> {
  const { context, draft, parts } = scene;
  const name = upstream?.name ?? '';
  const stored = upstream && existingUpstream(draft, name, upstream.apiStyle)?.['providerKey'];
  const offered = wellKnown(name)?.keyEnv ?? '';
  const isSet = Boolean(context.environment[offered]);
  const variable = { value: 'offered', name: `From $${offered}${isSet ? ', which is set' : ''}` };
  const source = await select(
    {
      message: `Where is the key of ${name}?`,
      choices: [
        ...(stored === undefined
          ? []
          : [{ value: 'stored', name: `Keep: ${maskedKey(stored, context.environment)}` }]),
        ...(offered !== '' && isSet ? [variable] : []),
        { value: 'typed', name: 'I type or paste it here; the file (0600) holds it' },
        ...(offered !== '' && !isSet ? [variable] : []),
        { value: 'other', name: 'In another environment variable; the file names it' },
      ],
    },
    parts.streams,
  );
  if (source === 'stored') return undefined;
  if (source === 'offered') return { env: offered };
  return source === 'typed' ? typedKey(scene) : otherVariable(scene);
}

async function typedKey({ parts: { streams } }: Scene): Promise<string> {
  const key = await password(
    {
      message: 'The key:',
      mask: '*',
      validate: (text) =>
        isCredential(text.trim()) || 'A key has no spaces and only visible ASCII characters.',
    },
    streams,
  );
  return key.trim();
}

async function otherVariable({ parts: { streams } }: Scene): Promise<Credential> {
  const env = await input(
    {
      message: 'The name of the variable:',
      validate: (text) => isEnvironmentName(text) || 'A name such as WORK_API_KEY, not the key.',
    },
    streams,
  );
  return { env };
}

type Next = 'keep' | 'again' | 'leave';

async function judge(upstreams: readonly UpstreamDraft[], scene: Scene): Promise<Next> {
  const { terminal } = scene.context;
  const checked = await check(upstreams, scene);
  if (checked === undefined) return 'keep';
  const { state, found } = checked;
  const name = upstreams[0]?.name ?? '';
  if (state === 'accepted') {
    terminal.note(`ok: ${name}: ${found}.`);
    return 'keep';
  }
  terminal.warn(`${name}: ${found}.`);
  return select(
    {
      message: 'What now?',
      default: state === 'refused' ? 'again' : 'keep',
      choices: [
        { value: 'again', name: 'Say again where the key is, and try once more' },
        { value: 'keep', name: 'Keep it as it is' },
        { value: 'leave', name: 'Leave this provider out' },
      ] as const,
    },
    scene.parts.streams,
  );
}

/** Undefined when there is nothing to try: the key is in a variable that is not set here. */
async function check(
  upstreams: readonly UpstreamDraft[],
  scene: Scene,
): Promise<KeyCheck | undefined> {
  const { terminal } = scene.context;
  const settings = settingsFor(upstreams, scene);
  if ('unset' in settings) {
    terminal.note('The key is not set in this shell, so it is not tried: svc start needs it.');
    return undefined;
  }
  if ('wrong' in settings) return { state: 'unknown', found: settings.wrong };
  terminal.note(`Trying the key: ${new URL(settings.baseUrl).host} lists its models …`);
  return checkKey(settings, scene.parts.openUpstream);
}

/** The first of the upstreams as a proxy would have it; the others share its key and its host. */
function settingsFor(
  upstreams: readonly UpstreamDraft[],
  { draft, context }: Scene,
): UpstreamSettings | { readonly unset: true } | { readonly wrong: string } {
  const [first] = upstreams;
  if (first === undefined) return { unset: true };
  // Judged alone, under a token that passes: what else is in the file says nothing about it.
  const whole = putUpstream(draft, first)['upstreams'];
  const entries: readonly unknown[] = Array.isArray(whole) ? whole : [];
  const own = entries.filter((one) => isNamed(one, first));
  const localToken = 'svc_local_of-no-configuration';
  const { settings, problems } = parseConfig({ upstreams: own, localToken }, context.environment);
  const [upstream] = settings?.upstreams ?? [];
  if (upstream !== undefined) return upstream;
  if (problems.every(({ isUnset }) => isUnset === true)) return { unset: true };
  return { wrong: problems.map(problemText).join('; ') };
}

function isNamed(one: unknown, { name, apiStyle }: UpstreamDraft): boolean {
  return (
    typeof one === 'object' &&
    one !== null &&
    Reflect.get(one, 'name') === name &&
    Reflect.get(one, 'apiStyle') === apiStyle
  );
}
