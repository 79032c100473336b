import type { OpenCatalog } from '../../adapters/catalog/catalog.ts';
import type { Login } from '../../core/http/logins.ts';
import type { TranscriptClient } from '../../core/memory/transcript-forms.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import type { CommandContext } from '../context.ts';
import type { OpenUpstream, KeyCheck } from '../doctor/key-check.ts';
import type { Changes } from './setup-save.ts';
import type { Prompts, PromptStreams } from './wizard-prompts.ts';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { readProxySettings } from '../../core/settings/config-proxy.ts';
import {
  type Environment,
  Findings,
  keyEnd,
  namedVariable,
  variableText,
  isCredential,
  isEnvironmentName,
} from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { ProxySettings, Credential } from '../../core/settings/settings.ts';

/** The state of the wizard, and the questions that several of its parts ask. */

export interface WizardDependencies {
  readonly openUpstream: OpenUpstream;
  readonly catalog: Pick<OpenCatalog, 'providers'>;
  /** The streams of the questions; stdout stays free for the output of commands. */
  readonly streams: PromptStreams;
}

/** The answers so far. Nothing has been written yet. */
export interface Answers {
  readonly context: CommandContext;
  readonly dependencies: WizardDependencies;
  readonly prompts: Prompts;
  /** The content of the configuration file; undefined if there is none. */
  readonly stored: Draft | undefined;
  /** The content of the file with the changes so far. */
  readonly draft: Draft;
  readonly changes: Changes;
  /** The clients that get memories through hooks, without a provider in svc. */
  readonly hooked: readonly Login[];
  /** The clients and whether they will use svc; undefined: not asked yet. */
  readonly wiring?: Wiring;
  /** The clients whose earlier sessions are imported; undefined: not asked yet. */
  readonly imports?: readonly TranscriptClient[];
}

/** Which clients will use svc, by their names in `svc run`. */
export interface Wiring {
  /** The clients that the user could choose. */
  readonly offered: readonly string[];
  /** The clients that the user chose. svc will change their settings files, so they always use svc. */
  readonly chosen: readonly string[];
}

/** Describes the configuration in a few lines, without whole keys. */
export function summaryOf(draft: Draft, environment: Environment): readonly string[] {
  const proxy = storedSettings(draft);
  const upstreams = Array.isArray(draft['upstreams']) ? draft['upstreams'] : [];
  return [
    `  Address    ${proxy.host}:${proxy.port}`,
    `  Memory     ${memoryText(draft['memory'], environment)}`,
    `  Recall     ${proxy.memoryMode}, at most ${proxy.recalledTokensMax} recalled tokens`,
    `  Shortening ${proxy.compressionMode}, from ${proxy.inputBudget} tokens on`,
    ...(proxy.cacheTtl === 'auto'
      ? ['  Cache      an hour for tools and system prompt after a pause']
      : []),
    ...(proxy.boundShortening === 'provider'
      ? ['  Bound      the provider clears old tool outputs of bound conversations']
      : []),
    ...upstreams.map((upstream: unknown) => `  Provider   ${upstreamText(upstream, environment)}`),
    ...(upstreams.length === 0 ? ['  Provider   none yet'] : []),
  ];
}

/** Returns the proxy's settings in the file. Variables of this shell do not override them here. */
export function storedSettings(draft: Draft): ProxySettings {
  return readProxySettings(draft['proxy'], { environment: {}, flags: {} }, new Findings());
}

function memoryText(memory: unknown, environment: Environment): string {
  if (!isRecord(memory) || memory['kind'] !== 'hosted') {
    return `one SQLite file on this machine, in ${dataFolder(environment)}`;
  }
  const key = maskedKey(memory['serviceKey'], environment);
  return `with the service ${hostOf(memory['baseUrl'])}, key ${key}`;
}

function upstreamText(upstream: unknown, environment: Environment): string {
  if (!isRecord(upstream)) return '?';
  const { name, apiStyle, baseUrl, providerKey, auth } = upstream;
  return [name, apiStyle, hostOf(baseUrl), credentialOf(auth)].map(String).join(', ');

  function credentialOf(kind: unknown): string {
    if (kind === 'none') return 'no key';
    if (kind === 'client') return 'the login of its client';
    return `key ${maskedKey(providerKey, environment)}`;
  }
}

function hostOf(baseUrl: unknown): string {
  return typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl).host : '?';
}

function maskedKey(value: unknown, environment: Environment): string {
  const name = namedVariable(value);
  if (name !== undefined)
    return `in ${variableText(name)}${environment[name] ? '' : ' (not set here)'}`;
  return typeof value === 'string' && value !== '' ? keyEnd(value) : 'missing';
}

/** A question for a key. The user types it, names an environment variable, or keeps the key that the file has. */
interface SecretQuestion {
  /** The question that asks where the key is. */
  readonly message: string;
  /** The question that asks for the key itself. It ends in a colon. */
  readonly direct: string;
  /** The key in the configuration file; undefined if there is none. */
  readonly stored: unknown;
  /** The variables that usually hold the key, the most likely first. */
  readonly offered: readonly string[];
}

/** 'keep': the key in the file stays. 'back': the user returns to the previous question. */
type SecretAnswer =
  | { readonly kind: 'keep' }
  | { readonly kind: 'back' }
  | { readonly kind: 'key'; readonly key: Credential };

export async function askSecret(question: SecretQuestion, answers: Answers): Promise<SecretAnswer> {
  const { message, stored, offered } = question;
  const { environment } = answers.context;
  const found = offered.filter((name) => Boolean(environment[name]));
  if (stored === undefined && found.length === 0) return askDirectly(question, answers);
  const source = await answers.prompts.select({
    message,
    choices: [
      ...(stored === undefined
        ? []
        : [{ value: 'stored', name: `Keep: ${maskedKey(stored, environment)}` }]),
      ...found.map((name) => ({ value: `$${name}`, name: `In $${name}, which is set` })),
      { value: 'typed', name: 'I type or paste it here; the file (0600) stores it' },
      { value: 'other', name: 'In another environment variable; the file stores only its name' },
      { value: 'back', name: 'Go back' },
    ],
  });
  if (source === 'stored') return { kind: 'keep' };
  if (source === 'back') return { kind: 'back' };
  if (source === 'typed') return { kind: 'key', key: await typedKey('The key:', answers) };
  const env = source === 'other' ? await otherVariable(answers) : source.slice('$'.length);
  return { kind: 'key', key: { env } };
}

/**
 * Asks for the key itself, or for the name of its variable. svc asks so if it knows no key: then the user most likely
 * has one to paste.
 */
async function askDirectly(
  { direct, offered }: SecretQuestion,
  answers: Answers,
): Promise<SecretAnswer> {
  const example = offered[0] ?? 'WORK_API_KEY';
  answers.context.terminal.note(
    `Paste the key: it is not shown, and the file (0600) stores it. Or type the name of its variable, for example $${example}. An empty answer goes back.`,
  );
  const text = await typedKey(direct, answers, (typed) => typed === '' || isVariable(typed));
  if (text === '') return { kind: 'back' };
  return { kind: 'key', key: isVariable(text) ? { env: text.slice('$'.length) } : text };
}

function isVariable(text: string): boolean {
  return text.startsWith('$') && isEnvironmentName(text.slice('$'.length));
}

async function typedKey(
  message: string,
  { prompts }: Answers,
  isOther: (text: string) => boolean = () => false,
): Promise<string> {
  const key = await prompts.password({
    message,
    validate: (text) =>
      isOther(text.trim()) ||
      isCredential(text.trim()) ||
      'A key has only visible ASCII characters and no spaces.',
  });
  return key.trim();
}

async function otherVariable({ prompts }: Answers): Promise<string> {
  return prompts.input({
    message: 'The name of the variable:',
    validate: (text) => isEnvironmentName(text) || 'A name such as WORK_API_KEY, not the key.',
  });
}

export type Next = 'keep' | 'again' | 'leave';

/**
 * Prints the result of a key's check, and asks what to do if the key was not accepted. `who`: whose key it is. `leave`:
 * the text of the choice that gives up.
 */
export async function askNext(
  { who, state, found, leave }: Pick<KeyCheck, 'state' | 'found'> & Record<'who' | 'leave', string>,
  { context: { terminal }, prompts }: Answers,
): Promise<Next> {
  if (state === 'accepted') {
    terminal.note(`ok: ${who}: ${found}.`);
    return 'keep';
  }
  terminal.warn(`${who}: ${found}.`);
  return prompts.select({
    message: 'What now?',
    default: state === 'refused' ? 'again' : 'keep',
    choices: [
      { value: 'again', name: 'Give the key again' },
      { value: 'keep', name: 'Keep it anyway' },
      { value: 'leave', name: leave },
    ] as const,
  });
}

/** Prints that the key's variable is not set in this shell. */
export function noteUnset({ context: { terminal } }: Answers): void {
  terminal.note('The key is not set in this shell, so svc cannot test it. svc start needs it.');
}
