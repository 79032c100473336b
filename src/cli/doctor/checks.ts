import { probeProxy } from '../../adapters/processes/local-calls.ts';
import type { LooseMode } from '../../adapters/files/config-file.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import { otherPort, count } from '../listing.ts';
import type { HealthCheck } from '../../ports/ui-api.ts';
import type { ExitCode } from '../cli-error.ts';
import { printable, type Terminal } from '../terminal.ts';
import { wrapped } from '../text-table.ts';

export type Check = HealthCheck;

/** Returns words that say that other users may read or write a folder or file. */
export function looseText({ path, mode }: LooseMode): string {
  return `${path} is open to others (mode 0${mode.toString(8)})`;
}

/** Returns the problem of a folder or file that other users may open. The fix makes it private. */
export function looseCheck(subject: string, loose: LooseMode): Check {
  return { level: 'problem', subject, found: looseText(loose), fix: FIX };
}

/** The command for problems that svc can fix without a decision of the user. */
export const FIX = 'svc doctor --fix';

export function checkNode(version: string): Check {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  // undici 7 and package.json's engines field require 20.18.1.
  const isOld = major < 20 || (major === 20 && (minor < 18 || (minor === 18 && patch < 1)));
  if (!isOld) return { level: 'ok', subject: 'Node', found: version };
  const fix = 'Install Node 22 or newer.';
  return { level: 'problem', subject: 'Node', found: `${version}; svc needs 20.18.1`, fix };
}

export async function checkPort(access: Access): Promise<Check> {
  const subject = 'Port';
  const { host, port } = access;
  const place = `${host}:${port}`;
  if (port === 0) return { level: 'ok', subject, found: 'a new port at every start' };
  const { listener, pid } = await probeProxy({ host, port }, access.localToken);
  if (pid !== undefined) return { level: 'ok', subject, found: `svc runs on ${place}` };
  if (listener === 'nobody') {
    return { level: 'ok', subject, found: `${place} is free; svc is not running` };
  }
  if (listener === 'svc') {
    const found = `the svc on ${place} does not know the token of this configuration: it has another configuration, or is older`;
    return { level: 'problem', subject, found, fix: `Stop that svc, or: ${takePort(port)}` };
  }
  if (listener === 'unreachable') {
    const fix = 'svc setup --yes --host 127.0.0.1';
    return { level: 'problem', subject, found: `${host} is not an address of this machine`, fix };
  }
  const does = listener === 'silent' ? 'does not answer' : 'is not svc';
  const fix = `Stop that program, or: ${takePort(port)}`;
  return { level: 'problem', subject, found: `the program on ${place} ${does}`, fix };
}

function takePort(port: number): string {
  return `svc setup --yes --port ${otherPort(port)}`;
}

interface CheckReport {
  readonly checks: readonly Check[];
  /** Other members of the JSON output, such as the path of the configuration. */
  readonly facts: Readonly<Record<string, string>>;
  readonly isJson: boolean;
}

/** Prints each check with its fix below it. Returns exit code 1 if there is a problem, otherwise 0. */
export function reportChecks({ checks, facts, isJson }: CheckReport, terminal: Terminal): ExitCode {
  const problems = checks.filter(({ level }) => level === 'problem').length;
  if (isJson) terminal.json({ ok: problems === 0, ...facts, checks });
  else {
    for (const line of checks.flatMap((check) => checkLines(check, terminal))) terminal.out(line);
    const warnings = checks.filter(({ level }) => level === 'warning').length;
    terminal.note(`${count(problems, 'problem')}, ${count(warnings, 'warning')}.`);
  }
  return problems === 0 ? 0 : 1;
}

const LEVEL_COLUMNS = 7;
/** The indent of all lines of a check but the first, so that only levels are in the first column. */
const INDENT = ' '.repeat(LEVEL_COLUMNS + 2);

function checkLines({ level, subject, found, fix }: Check, terminal: Terminal): readonly string[] {
  const { colors } = terminal;
  const columns = terminal.columns(Infinity);
  const color = { ok: colors.green, warning: colors.yellow, problem: colors.red }[level];
  const text = wrapped(INDENT + printable(`${subject}: ${found}`), columns, INDENT);
  const mend = fix === undefined ? [] : wrapped(INDENT + printable(fix), columns, INDENT);
  const [first = '', ...rest] = text;
  const head = color(level.padEnd(LEVEL_COLUMNS));
  return [`${head}${first.slice(LEVEL_COLUMNS)}`, ...rest, ...mend];
}
