import { readFile, stat } from 'node:fs/promises';
import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { verifyObject } from '../../core/service/jws.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { count } from '../listing.ts';
import { oneLine } from '../terminal.ts';
import { textOf } from './console-fields.ts';

/** `svc service receipts verify`: checks signed receipts with the public keys, without the service. */

export interface VerifyOptions {
  /** A JWKS, as /.well-known/svc/receipt-keys.json gives it. */
  readonly keys: string;
  readonly json?: boolean;
}

/** A day's export of a busy tenant. */
const FILE_BYTES_MAX = 512 * 1024 * 1024;

/** Exit 1 when one is not as it was signed. */
export async function verifyReceipts(
  file: string,
  options: VerifyOptions,
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const keys = keysIn(await textOfFile(options.keys), options.keys);
  const receipts = receiptsIn(await textOfFile(file), file);
  const found = receipts.map((receipt, at) => ({
    id: idOf(receipt) ?? `number ${at + 1}`,
    outcome: verifyObject(receipt, keys),
  }));
  const wrong = found.filter(({ outcome }) => outcome !== 'valid');
  if (options.json === true) terminal.json({ receipts: found.length, wrong });
  else for (const { id, outcome } of wrong) terminal.out(`${oneLine(id, 64)}  ${WORDS[outcome]}`);
  terminal.note(`${count(found.length, 'receipt')}, ${wrong.length} wrong.`);
  return wrong.length === 0 && found.length > 0 ? 0 : 1;
}

const WORDS = {
  valid: 'valid',
  unsigned: 'is not signed',
  unknown_key: 'is signed with a key that is not among these',
  invalid: 'is not what was signed',
} as const;

function idOf({ purge_id: purge, receipt_id: receipt }: Readonly<Record<string, unknown>>) {
  return typeof purge === 'string' ? purge : typeof receipt === 'string' ? receipt : undefined;
}

/** One object, a list of the API, or one object a line. */
function receiptsIn(text: string, file: string): readonly Readonly<Record<string, unknown>>[] {
  const whole = parseJson(text);
  const { data } = asRecord(whole);
  if (Array.isArray(data)) return data.map(asRecord);
  if (whole !== undefined) return [asRecord(whole)];
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const values = lines.map(parseJson);
  if (!values.includes(undefined)) return values.map(asRecord);
  throw new CliError(`${file} holds no receipts.`, 'Give a receipt, a list of them, or NDJSON.', 2);
}

function keysIn(text: string, file: string): readonly { kid: string; x: string }[] {
  const { keys } = asRecord(parseJson(text));
  const found = Array.isArray(keys) ? keys.map(asRecord) : [];
  if (found.length > 0) return found.map(({ kid, x }) => ({ kid: textOf(kid), x: textOf(x) }));
  const hint = 'Fetch it: curl https://HOST/.well-known/svc/receipt-keys.json > keys.json';
  throw new CliError(`${file} holds no public keys.`, hint, 2);
}

async function textOfFile(file: string): Promise<string> {
  try {
    if ((await stat(file)).size <= FILE_BYTES_MAX) return await readFile(file, 'utf8');
  } catch {
    // Said below.
  }
  throw new CliError(`${file} cannot be read.`, 'Look at its name, its mode and its size.', 2);
}
