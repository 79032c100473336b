import { dataFolder } from '../../adapters/files/own-folders.ts';
import { spaceNames } from '../../adapters/projects/registry.ts';
import { isShortReference } from '../../core/memory/reference.ts';
import type { SpaceNames } from '../../core/request/space-names.ts';
import type { Memory } from '../../ports/memory.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { deadline, readStore } from '../store.ts';
import { oneLine } from '../terminal.ts';
import { isSpace } from '../../core/request/space.ts';

/** Finds the references and spaces that users type in a short form, and shortens names of spaces. */

const SHOWN_CHARS = 60;

/** Returns the short names of these spaces, or of the spaces of these records. */
export function namesOf(
  all: Iterable<string | { readonly space: string }>,
  { environment }: Pick<CommandContext, 'environment'>,
): SpaceNames {
  const spaces = Array.from(all, (one) => (typeof one === 'string' ? one : one.space));
  return spaceNames(dataFolder(environment), spaces);
}

export function nameOf(space: string, context: Pick<CommandContext, 'environment'>): string {
  return namesOf([space], context).of(space);
}

/**
 * Returns the complete name of a space that the user typed: `shop` means the space of the project shop, if there is
 * one. A name that no space has is returned as it is. Throws CliError if several projects have the name.
 */
export async function typedSpace(typed: string, context: CommandContext): Promise<string> {
  // A name with a slash is complete, because no short name has a slash.
  if (typed === '' || typed.includes('/')) return typed;
  const held = await readStore(context, async ({ desk }) => (await desk?.shelves()) ?? []);
  const names = namesOf(held, context);
  const found = names.find(typed).toSorted();
  if (found.length < 2) return found[0] ?? typed;
  throw new CliError(
    `Several projects are called ${typed}: ${found.join(', ')}.`,
    'Give the whole name. The folders are in: svc memory spaces',
    2,
  );
}

/** Returns the space of the project of a folder. It waits longer for a slow disk than a request may. */
export async function projectOf(
  folder: string,
  environment: CommandContext['environment'],
): Promise<string> {
  const { GitProjects, COMMAND_WAITS } = await import('../../adapters/projects/git-projects.ts');
  return (await new GitProjects(dataFolder(environment), COMMAND_WAITS).find(folder)).space;
}

/** Returns the space that --space names, or else that of the project of the current folder. */
export async function spaceFor(
  named: string | undefined,
  { environment }: CommandContext,
): Promise<string> {
  const space = named ?? (await projectOf(process.cwd(), environment));
  if (!isSpace(space)) throw wrongSpace();
  return space;
}

/** Returns the error for a wrong name of a space. `flag`: the option or argument with the name. */
export function wrongSpace(flag = '--space'): CliError {
  return new CliError(
    `${flag}: expected 1 to 128 of a-z 0-9 . _ / - with a letter or digit first.`,
    'See the names: svc memory list',
    2,
  );
}

/** Returns the reference that begins with `ref`, or `ref` itself if none does. Throws CliError if several do. */
export async function wholeReference(
  memory: Pick<Memory, 'references' | 'retrieve'>,
  ref: string,
  signal = deadline(),
): Promise<string> {
  if (!isShortReference(ref)) return ref;
  const [first, ...others] = await memory.references(ref, signal);
  if (first === undefined) return ref;
  if (others.length === 0) return first;
  const texts = await Promise.all(
    [first, ...others].map(async (one) => {
      const text = (await memory.retrieve({ ref: one }, signal))?.text ?? '';
      return `  ${one}  ${oneLine(text, SHOWN_CHARS)}`;
    }),
  );
  throw new CliError(
    ['Several references begin with this:', ...texts],
    'Give more characters of the reference.',
  );
}

/** Does the same as wholeReference() for several references. */
export function wholeReferences(
  memory: Pick<Memory, 'references' | 'retrieve'>,
  refs: readonly string[],
): Promise<readonly string[]> {
  const signal = deadline();
  return Promise.all(refs.map((ref) => wholeReference(memory, ref, signal)));
}

/** Returns the error for a reference that no memory has. */
export function noSuchReference(ref: string): CliError {
  const isTooShort = /^m_.{0,3}$/.test(ref);
  const isRule = ref.startsWith('r_');
  const hint = isRule
    ? 'It is the id of a rule. svc memory rules names the memory of each, and retires one.'
    : isTooShort
      ? 'Give at least 4 characters after m_.'
      : 'Find it with: svc memory search WORDS';
  return new CliError('No memory has this reference.', hint);
}
