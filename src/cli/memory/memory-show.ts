import { spaceNames } from '../../adapters/projects/registry.ts';
import type { SpaceNames } from '../../core/request/space-names.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import type { Holds } from '../../core/memory/outgrown.ts';
import type { StoredRecord } from '../../ports/memory.ts';
import type { CliStore, OpenStore } from '../compose-store.ts';
import type { CommandContext } from '../context.ts';
import { count, timeText } from '../listing.ts';
import { oneLine, type Terminal } from '../terminal.ts';
import { wrapped } from '../text-table.ts';
import { CodeChecker, type FileCheck } from './code-check.ts';
import { deadline, noSuchReference, wholeReference, withStore } from './memory.ts';

/** `svc memory get --origin`: where a memory comes from, and whether it still holds. */

interface Shown {
  readonly record: StoredRecord;
  /** Undefined where nothing is known of its files. */
  readonly code: ShownCode | undefined;
  readonly holds: Holds;
  readonly why: string;
}

interface ShownCode {
  readonly commit: string;
  readonly root: string;
  readonly files: readonly FileCheck[];
}

export async function showMemory(
  request: { readonly ref: string; readonly json?: boolean | undefined },
  context: CommandContext,
  openStore: OpenStore,
): Promise<void> {
  const shown = await withStore(context, openStore, async (store) => {
    const { memory } = store;
    const ref = await wholeReference(memory, request.ref, deadline());
    const record = await memory.retrieve({ ref }, deadline());
    return record && look(record, store, dataFolder(context.environment));
  });
  if (shown === undefined) {
    throw noSuchReference(request.ref);
  }
  if (request.json === true) context.terminal.json(jsonOf(shown));
  else {
    const names = spaceNames(dataFolder(context.environment), [shown.record.space]);
    print(shown, names, context.terminal);
  }
}

async function look(record: StoredRecord, { code }: CliStore, folder: string): Promise<Shown> {
  const unknown = { record, code: undefined, holds: 'unknown' } as const;
  if (code === undefined) {
    return { ...unknown, why: 'a memory service stores neither the commit nor the files' };
  }
  const found = await code.provenance.list({ refs: [record.ref], limit: 8 });
  const held = found.find((one) => one.record.space === record.space);
  if (held === undefined) return { ...unknown, why: 'svc knows neither its commit nor its files' };
  const [check] = await new CodeChecker(code.reader, folder).check([held]);
  const { files = [], holds = 'unknown' } = check ?? {};
  return { record, code: { ...held, files }, holds, why: reasonFor(holds, files) };
}

function reasonFor(holds: Holds, files: readonly FileCheck[]): string {
  const changed = files.filter(({ state }) => state === 'changed' || state === 'gone').length;
  if (files.length === 0) return 'its exchange named no file of the folder';
  if (holds === 'yes') return `${count(files.length, 'file')} unchanged since then`;
  if (holds === 'outgrown') return `of ${count(files.length, 'file')} ${changed} changed since`;
  return 'its files are missing, or could not be read';
}

function jsonOf({ record, code, holds, why }: Shown) {
  const { commit, root, files } = code ?? {};
  return { ...record, commit, root, files, holds, why };
}

const HOLDS: Readonly<Record<Holds, string>> = {
  yes: 'yes',
  outgrown: 'not for sure',
  unknown: 'unknown',
};

const NAME_CHARS = 9;

function print({ record, code, holds, why }: Shown, names: SpaceNames, terminal: Terminal): void {
  const columns = terminal.columns(Infinity);
  const row = (name: string, value: string): void => {
    const whole = `${name.padEnd(NAME_CHARS)} ${value === '' ? 'unknown' : value}`;
    for (const line of wrapped(whole, columns, ' '.repeat(NAME_CHARS + 1))) terminal.out(line);
  };
  row('memory', record.ref);
  row('text', text(record.text));
  row('said', `${timeText(record.at)}, ${record.role}`);
  row('session', text(record.conversation));
  row('client', text(record.client));
  row('project', text(names.of(record.space)));
  row('branch', text(record.branch ?? ''));
  row('commit', code?.commit ?? '');
  row('folder', text(code?.root ?? ''));
  const [first, ...others] = (code?.files ?? []).map((file) => fileText(file));
  row('files', first ?? '');
  for (const other of others) row('', other);
  row('holds', `${HOLDS[holds]}: ${why}`);
}

function text(value: string): string {
  return oneLine(value, VALUE_CHARS_MAX);
}

const VALUE_CHARS_MAX = 300;

/** `src/pool.ts (changed)` */
export function fileText({ path, state }: FileCheck): string {
  const name = oneLine(path, VALUE_CHARS_MAX);
  return state === 'same' ? name : `${name} (${state})`;
}
