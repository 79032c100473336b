import {
  existingUpstream,
  putUpstream,
  type UpstreamDraft,
} from '../../core/settings/config-draft.ts';
import { parseUpstream } from '../../core/settings/config-schema.ts';
import { problemText } from '../../core/settings/config-values.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import { checkKey, type KeyCheck } from '../doctor/key-check.ts';
import { askNext, askSecret, type Next } from './wizard-secret.ts';
import type { Answers } from './wizard-answers.ts';

/** The key of one provider, and whether the provider takes it. A typed key is never shown. */
export async function askKey(
  upstreams: readonly UpstreamDraft[],
  answers: Answers,
): Promise<readonly UpstreamDraft[]> {
  for (;;) {
    const keyed = await withKey(upstreams, answers);
    if (keyed.length === 0) return [];
    const next = await judge(keyed, answers);
    if (next === 'keep') return keyed;
    if (next === 'leave') return [];
  }
}

/** Empty: the person went back. */
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

async function judge(upstreams: readonly UpstreamDraft[], answers: Answers): Promise<Next> {
  const { terminal } = answers.context;
  const checked = await check(upstreams, answers);
  if (checked === undefined) return 'keep';
  const { state, found } = checked;
  const name = upstreams[0]?.name ?? '';
  if (state === 'accepted') {
    terminal.note(`ok: ${name}: ${found}.`);
    return 'keep';
  }
  terminal.warn(`${name}: ${found}.`);
  return askNext({ isRefused: state === 'refused', leave: 'Skip this provider' }, answers);
}

/** Undefined when there is nothing to try: the key is in a variable that is not set here. */
async function check(
  upstreams: readonly UpstreamDraft[],
  answers: Answers,
): Promise<KeyCheck | undefined> {
  const { terminal } = answers.context;
  const settings = settingsFor(upstreams, answers);
  if ('unset' in settings) {
    terminal.note('The key is not set in this shell, so svc cannot test it. svc start needs it.');
    return undefined;
  }
  if ('wrong' in settings) return { state: 'unknown', found: settings.wrong };
  terminal.note(`Testing the key: asking ${new URL(settings.baseUrl).host} for its models …`);
  return checkKey(settings, answers.dependencies.openUpstream);
}

/** The first of the upstreams as a proxy would have it; the others share its key and its host. */
function settingsFor(
  upstreams: readonly UpstreamDraft[],
  { draft, context }: Answers,
): UpstreamSettings | { readonly unset: true } | { readonly wrong: string } {
  const [first] = upstreams;
  if (first === undefined) return { unset: true };
  // As it would be in the file, judged alone.
  const entry = existingUpstream(putUpstream(draft, first), first.name, first.apiStyle);
  const { upstream, problems } = parseUpstream(entry, context.environment);
  if (upstream !== undefined) return upstream;
  if (problems.every(({ isUnset }) => isUnset === true)) return { unset: true };
  return { wrong: problems.map(problemText).join('; ') };
}
