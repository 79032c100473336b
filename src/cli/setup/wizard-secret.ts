import { isCredential, isEnvironmentName } from '../../core/settings/config-values.ts';
import type { Credential } from '../../core/settings/settings.ts';
import { maskedKey } from './wizard-summary.ts';
import type { Answers } from './wizard-answers.ts';
import { input, password, select } from './wizard-prompts.ts';

/** Where a key is: typed and never shown, in a variable of the environment, or in the file already. */
export interface SecretQuestion {
  /** Asks where it is. */
  readonly message: string;
  /** Asks for the key itself, with a colon. */
  readonly direct: string;
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

export async function askSecret(question: SecretQuestion, answers: Answers): Promise<SecretAnswer> {
  const { message, stored, offered } = question;
  const { environment } = answers.context;
  const found = offered.filter((name) => Boolean(environment[name]));
  if (stored === undefined && found.length === 0) return askDirectly(question, answers);
  const source = await select(
    {
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
    },
    answers.dependencies.streams,
  );
  if (source === 'stored') return { kind: 'keep' };
  if (source === 'back') return { kind: 'back' };
  if (source === 'typed') return { kind: 'key', key: await typedKey('The key:', answers) };
  const env = source === 'other' ? await otherVariable(answers) : source.slice('$'.length);
  return { kind: 'key', key: { env } };
}

/** Where no key is at hand, a person most likely has one to paste: then it is one question. */
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
  { dependencies: { streams } }: Answers,
  isOther: (text: string) => boolean = () => false,
): Promise<string> {
  const key = await password(
    {
      message,
      validate: (text) =>
        isOther(text.trim()) ||
        isCredential(text.trim()) ||
        'A key has only visible ASCII characters and no spaces.',
    },
    streams,
  );
  return key.trim();
}

async function otherVariable({ dependencies: { streams } }: Answers): Promise<string> {
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
  { dependencies: { streams } }: Answers,
): Promise<Next> {
  return select(
    {
      message: 'What now?',
      default: isRefused ? 'again' : 'keep',
      choices: [
        { value: 'again', name: 'Give the key again' },
        { value: 'keep', name: 'Keep it anyway' },
        { value: 'leave', name: leave },
      ] as const,
    },
    streams,
  );
}
