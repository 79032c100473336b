import { findStates, STATE_TEXTS, type StateKind, type StateText } from '../../core/plan/states.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { wrapped } from '../text-table.ts';

/** `svc explain`: what a state of a request means, in the words of docs/states.md. */

export interface ExplainOptions {
  readonly json?: boolean;
}

/** Where a person has met the name. */
export const KIND_TITLES: Readonly<Record<StateKind, string>> = {
  memory: 'Memory (header x-svc-memory-state)',
  continuity: 'Shortening (header x-svc-continuity-state)',
  end: 'How an answer ended (svc requests)',
  error: 'Errors of svc itself (field code)',
};

export function explainState(
  name: string | undefined,
  options: ExplainOptions,
  { terminal }: CommandContext,
): void {
  const found = name === undefined ? STATE_TEXTS : findStates(name);
  if (found.length === 0) {
    throw new CliError('There is no state of this name.', 'See all: svc explain');
  }
  if (options.json === true) terminal.json(found);
  else {
    const lines = name === undefined ? listOf(found) : found.flatMap(textOf);
    const columns = terminal.columns(Infinity);
    for (const line of lines.flatMap((one) => wrapped(one, columns, '  '))) terminal.out(line);
  }
}

function listOf(found: readonly StateText[]): readonly string[] {
  const lines: string[] = [];
  let kind: StateKind | undefined;
  for (const state of found) {
    if (state.kind !== kind) lines.push(...(lines.length > 0 ? [''] : []), KIND_TITLES[state.kind]);
    kind = state.kind;
    lines.push(`  ${state.name}`);
  }
  return [...lines, '', 'To explain one of them: svc explain NAME'];
}

function textOf({ name, meaning, advice }: StateText): readonly string[] {
  return [`${name}: ${meaning}`, ...(advice === '' ? [] : [`  ${advice}`])];
}
