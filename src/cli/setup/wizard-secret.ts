import input from '@inquirer/input';
import password from '@inquirer/password';
import select from '@inquirer/select';
import { isCredential, isEnvironmentName } from '../../core/settings/config-values.ts';
import type { Credential } from '../../core/settings/settings.ts';
import { maskedKey } from './wizard-summary.ts';
import type { Scene } from './wizard-scene.ts';

/** Where a key is: typed and never shown, in a variable of the environment, or in the file already. */
export interface SecretQuestion {
  readonly message: string;
  /** The file's value; undefined where it has none. */
  readonly stored: unknown;
  /** Variables that it is usually in, the likeliest first. */
  readonly offered: readonly string[];
}

/** 'keep': what the file has stays. 'back': the person thought better of it. */
export type SecretAnswer =
  | { readonly kind: 'keep' }
  | { readonly kind: 'back' }
  | { readonly kind: 'key'; readonly key: Credential };

export async function askSecret(
  { message, stored, offered }: SecretQuestion,
  scene: Scene,
): Promise<SecretAnswer> {
  const { environment } = scene.context;
  const isSet = (name: string): boolean => Boolean(environment[name]);
  // A variable that is set is offered before typing; otherwise the usual name is offered after it.
  const found = offered.filter(isSet);
  const usual = found.length === 0 ? offered.slice(0, 1) : [];
  const variable = (name: string): { value: string; name: string } => ({
    value: `$${name}`,
    name: `From $${name}${isSet(name) ? ', which is set' : ''}`,
  });
  const source = await select(
    {
      message,
      choices: [
        ...(stored === undefined
          ? []
          : [{ value: 'stored', name: `Keep: ${maskedKey(stored, environment)}` }]),
        ...found.map(variable),
        { value: 'typed', name: 'I type or paste it here; the file (0600) holds it' },
        ...usual.map(variable),
        { value: 'other', name: 'In another environment variable; the file names it' },
        { value: 'back', name: 'Go back' },
      ],
    },
    scene.parts.streams,
  );
  if (source === 'stored') return { kind: 'keep' };
  if (source === 'back') return { kind: 'back' };
  if (source === 'typed') return { kind: 'key', key: await typedKey(scene) };
  const env = source === 'other' ? await otherVariable(scene) : source.slice('$'.length);
  return { kind: 'key', key: { env } };
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

async function otherVariable({ parts: { streams } }: Scene): Promise<string> {
  return input(
    {
      message: 'The name of the variable:',
      validate: (text) => isEnvironmentName(text) || 'A name such as WORK_API_KEY, not the key.',
    },
    streams,
  );
}

export type Next = 'keep' | 'again' | 'leave';

/** After a check that did not say yes; `leave` names what is left out. */
export async function askNext(
  { isRefused, leave }: { readonly isRefused: boolean; readonly leave: string },
  { parts: { streams } }: Scene,
): Promise<Next> {
  return select(
    {
      message: 'What now?',
      default: isRefused ? 'again' : 'keep',
      choices: [
        { value: 'again', name: 'Say again where the key is, and try once more' },
        { value: 'keep', name: 'Keep it as it is' },
        { value: 'leave', name: leave },
      ] as const,
    },
    streams,
  );
}
