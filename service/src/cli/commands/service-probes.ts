import { asList, asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { CliError, type ExitCode } from '../../../../src/cli/cli-error.ts';
import type { CommandContext } from '../../../../src/cli/context.ts';
import { count } from '../../../../src/cli/listing.ts';
import { readKey } from '../../../../src/cli/setup/setup-upstream.ts';
import { oneLine } from '../../../../src/cli/terminal.ts';
import { table } from '../../../../src/cli/text-table.ts';
import { type ConsoleOptions, withConsole } from './console-access.ts';
import { textOf } from './console-fields.ts';
import { withRunningConsole } from './running-console.ts';
import { findProvider, pathOf } from './service-providers.ts';

/** `svc-service providers presets`, `models`, `test` and `fingerprint`: what a person looks at to set a provider up. */

/** `search`: part of an id or a name. */
export async function listPresets(
  search: string | undefined,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<void> {
  const { terminal } = context;
  const { data } = await withConsole(options, context, (console) =>
    console.call({ method: 'GET', path: 'presets' }),
  );
  const wanted = search?.toLowerCase() ?? '';
  const presets = asList(data)
    .map(asRecord)
    .filter(({ preset_id: id, name }) =>
      `${textOf(id)} ${textOf(name)}`.toLowerCase().includes(wanted),
    );
  if (options.json === true) {
    terminal.json(presets);
    return;
  }
  if (presets.length === 0) {
    terminal.note('No preset has this text in its name. Add another provider with --base-url.');
    return;
  }
  const rows = presets.map((preset) => [
    textOf(preset['preset_id']),
    oneLine(textOf(preset['name']), 40),
    asList(preset['api_styles']).map(textOf).join(' '),
  ]);
  for (const line of table(rows, { columns: terminal.columns(160), left: [0, 1, 2] })) {
    terminal.out(line);
  }
}

/** Exit code 1 where the provider gave no list: a model can be typed all the same. */
export async function fetchModels(
  name: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const found = await withRunningConsole(options, context, async (console) => {
    const provider = await findProvider(console, name);
    return console.call({ method: 'POST', path: `${pathOf(provider)}/models`, body: {} });
  });
  const { outcome, models, truncated, dropped } = found;
  if (options.json === true) terminal.json(found);
  else for (const model of asList(models)) terminal.out(oneLine(textOf(model), 256));
  if (outcome === 'listed') {
    if (truncated === true) terminal.note('There are more: svc reads at most 5,000.');
    if (typeof dropped === 'number' && dropped > 0) {
      terminal.note(`${count(dropped, 'entry')} without a usable name left out.`);
    }
    return 0;
  }
  const why = OUTCOMES[textOf(outcome)] ?? 'The provider sent no list.';
  throw new CliError(
    why,
    `Name the models yourself: svc-service providers update ${name} --model NAME`,
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  unreachable: 'The provider could not be reached.',
  unauthorized: 'The provider refused the credential.',
  not_supported: 'The provider has no list of models.',
  invalid: 'The answer of the provider is not a list of models.',
};

/** Exit code 1 where the provider did not answer with success. */
export async function testProvider(
  name: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const { ok, status, error_code, error_message, ms } = await withRunningConsole(
    options,
    context,
    async (console) => {
      const provider = await findProvider(console, name);
      return console.call({ method: 'POST', path: `${pathOf(provider)}/test`, body: {} });
    },
  );
  if (options.json === true) terminal.json({ ok, status, error_code, error_message, ms });
  else {
    const outcome = typeof status === 'number' ? String(status) : textOf(error_code);
    terminal.out(`${outcome} in ${String(ms)} ms`);
    if (typeof error_message === 'string') terminal.note(error_message);
  }
  return ok === true ? 0 : 1;
}

/** The credential comes by stdin. Exit code 1 where another one is saved. */
export async function compareCredential(
  name: string,
  options: ConsoleOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const credential = await readKey(context.stdin, 'fingerprint');
  const { fingerprint, matches } = await withConsole(options, context, async (console) => {
    const provider = await findProvider(console, name);
    const path = `${pathOf(provider)}/fingerprint`;
    return console.call({ method: 'POST', path, body: { credential } });
  });
  if (options.json === true) terminal.json({ fingerprint, matches });
  else terminal.out(textOf(fingerprint));
  if (matches !== true) terminal.note('Another credential is saved with this provider.');
  return matches === true ? 0 : 1;
}
