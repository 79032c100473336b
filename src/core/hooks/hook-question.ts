import { asList, asRecord, asText } from '../bytes/json-fields.ts';
import type { Action } from '../recall/second-look.ts';

/**
 * What a hook asks the memory: of the running proxy over loopback, or of the store itself. It holds what the hook has
 * read of the session, so that the memory reads no file that a client names.
 */
export interface HookQuestion {
  /** `look`: a second look, after the first calls of a prompt. */
  readonly kind: 'start' | 'prompt' | 'look' | 'compacted';
  readonly client: string;
  readonly session: string;
  readonly folder: string;
  readonly occasion: string;
  readonly prompt: string;
  /** The last answer, and the prompts before this one: masked by whoever answers. */
  readonly answer: string;
  readonly around: readonly string[];
  /** Digests of the texts that the session still has. */
  readonly held: readonly string[];
  readonly files: readonly string[];
  /** Nothing was answered in the session yet. */
  readonly isOpening: boolean;
  readonly action?: Action;
}

const KINDS = ['start', 'prompt', 'look', 'compacted'] as const;
const NAME_CHARS_MAX = 4096;
const TEXT_CHARS_MAX = 1 << 20;
const LIST_MAX = 4096;

/** Undefined for anything else. */
export function readHookQuestion(value: unknown): HookQuestion | undefined {
  const fields = asRecord(value);
  const kind = KINDS.find((one) => one === fields['kind']);
  const client = name(fields['client']);
  const session = name(fields['session']);
  if (kind === undefined || client === '' || session === '') return undefined;
  const { action } = fields;
  return {
    kind,
    client,
    session,
    folder: name(fields['folder']),
    occasion: name(fields['occasion']),
    prompt: asText(fields['prompt']).slice(0, TEXT_CHARS_MAX),
    answer: asText(fields['answer']).slice(-TEXT_CHARS_MAX),
    around: texts(fields['around']),
    held: texts(fields['held']),
    files: texts(fields['files']),
    isOpening: fields['isOpening'] === true,
    ...(action !== undefined && { action: actionIn(action) }),
  };
}

function actionIn(value: unknown): Action {
  const { files, names, commands, errors } = asRecord(value);
  return {
    files: texts(files),
    names: texts(names),
    commands: texts(commands),
    errors: texts(errors),
  };
}

function name(value: unknown): string {
  const text = asText(value);
  return text.length <= NAME_CHARS_MAX ? text : '';
}

function texts(value: unknown): readonly string[] {
  return asList(value)
    .slice(0, LIST_MAX)
    .map(asText)
    .filter((text) => text !== '');
}
