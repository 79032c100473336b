import { readPrivate, SETTINGS_FILE } from '../../adapters/service-store/service-files.ts';
import { parseServiceSettings, type ServiceSettings } from '../../core/settings.ts';
import { CliError } from '../../../../src/cli/cli-error.ts';

/** Reads service.json. No error repeats a value of it: an address holds a password. */

/** The settings with flags over them. Throws CliError. */
export async function serviceSettings(
  folder: string,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ServiceSettings> {
  const settings = await settingsIn(folder, flags);
  if (settings !== undefined) return settings;
  throw new CliError(`There is no service in ${folder}.`, 'Create one: svc-service init');
}

/** Undefined where there is no service yet. Throws CliError for a file that does not fit. */
export async function settingsIn(
  folder: string,
  flags: Readonly<Record<string, unknown>> = {},
): Promise<ServiceSettings | undefined> {
  const text = await readPrivate(folder, SETTINGS_FILE);
  if (text === undefined) return undefined;
  const { settings, problems } = parseServiceSettings({ ...jsonOf(text, folder), ...flags });
  if (settings !== undefined) return settings;
  const file = `${folder}/${SETTINGS_FILE}`;
  throw new CliError(
    problems.map((problem) => `${SETTINGS_FILE}: ${problem}.`),
    `Correct ${file}, or the flags of this command.`,
  );
}

function jsonOf(text: string, folder: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Said below, without a piece of the file.
  }
  throw new CliError(
    `${folder}/${SETTINGS_FILE} is not JSON.`,
    'Correct it, or create a new service.',
  );
}
