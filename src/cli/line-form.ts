import { CliError } from './cli-error.ts';
import type { Terminal } from './terminal.ts';

/** How a listener shows what it answers: a line for a person, a line of JSON, or nothing. */

const FORMS = ['text', 'json', 'off'] as const;

export interface LineOptions {
  /** As typed after --log. */
  readonly log?: string;
  readonly quiet?: boolean;
  /** Text also where no terminal shows it: the lines of a service are read later, in its log. */
  readonly isLogged?: boolean;
  /** The command whose help names the forms. */
  readonly command: string;
}

/** Text on a terminal, or for what is logged anyway, unless `--log` names another form. Throws CliError for an unknown form. */
export function lineForm(
  { log, quiet, isLogged = false, command }: LineOptions,
  terminal: Terminal,
): (typeof FORMS)[number] {
  const form = log === undefined ? undefined : FORMS.find((known) => known === log);
  if (log !== undefined && form === undefined) {
    const expected = `--log: expected one of ${FORMS.join(', ')}.`;
    throw new CliError(expected, `See: ${command} --help`, 2);
  }
  if (form === 'json') return form;
  const isShown = form === 'text' || (form === undefined && (isLogged || terminal.areNotesWatched));
  return isShown && quiet !== true ? 'text' : 'off';
}
