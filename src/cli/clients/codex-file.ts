import { join } from 'node:path';
import { CODEX_FOLDER } from '../../adapters/foreign/client-files.ts';
import { readForeignFile } from '../../adapters/foreign/foreign-file.ts';
import { parseToml } from '../../adapters/foreign/toml-text.ts';
import type { ClientChange } from '../../core/foreign/client-change.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { asRecord } from '../../core/bytes/json-fields.ts';
import {
  BLOCK_BEGIN,
  BLOCK_END,
  insertBlock,
  removeBlock,
  type TomlBlock,
} from '../../core/foreign/toml-block.ts';
import { tomlString } from '../../core/foreign/shell-quote.ts';
import { CliError } from '../cli-error.ts';
import { type Applied, type ClientFileForm, isSameValue, type Reverted } from './client-file.ts';
import { clientFolder } from './client-home.ts';

/**
 * Adds one marked block to Codex's config.toml. A key or table of the file that the block has too becomes a comment;
 * all other lines stay. A separate profile file (`svc.config.toml`) would need `codex -p svc` in every call, which the
 * app and the editors cannot do: since Codex 0.134 no key of config.toml names a profile
 * (developers.openai.com/codex/config-advanced, November 2026).
 */

const PROVIDER = 'svc';

/** Makes the block that adds svc as a provider. */
export function providerBlock(tables: TomlBlock['tables']): TomlBlock {
  return { top: { model_provider: `"${PROVIDER}"` }, tables };
}

/**
 * Returns settings that give Codex's built-in provider another base URL. Codex then keeps its login and its history.
 */
export function builtInBlock(baseUrl: string): TomlBlock {
  const top = { model_provider: '"openai"', openai_base_url: tomlString(baseUrl) };
  return { top, tables: [] };
}

export function codexFile(environment: Environment, block: TomlBlock): ClientFileForm {
  const path = join(clientFolder(environment, CODEX_FOLDER), 'config.toml');
  return {
    path,
    byHand: () => `delete the lines from "${BLOCK_BEGIN}" to "${BLOCK_END}".`,
    apply: (text) => apply(path, text, block),
    revert: (text, { toml }) => (toml === undefined ? 'absent' : revert(text, toml)),
    isEmpty: (text) => text.trim() === '',
    hasMark: (text) => text.includes(BLOCK_BEGIN),
  };
}

type Toml = Readonly<Record<string, unknown>>;

function apply(path: string, text: string, block: TomlBlock): Applied {
  const before = parseToml(text);
  if (before === undefined) {
    throw new CliError(
      `${path} is not valid TOML.`,
      'Correct the file first; codex cannot read it either.',
    );
  }
  const { text: after, change } = insertBlock(text, block, (one) => parseToml(one) !== undefined);
  const own = parseToml(linesOf(block).join('\n')) ?? {};
  const wanted = withBlock(before, own);
  // insertBlock() works on lines of text, so check the result with the parser.
  if (!isSameValue(parseToml(after), wanted)) {
    throw new CliError(
      `${path} sets model_provider or model_providers.${PROVIDER} in a form that svc cannot edit.`,
      'Remove that yourself and try again, or add the output of: svc print-config codex',
    );
  }
  return { text: after, change: { toml: change } };
}

function linesOf({ top, tables }: TomlBlock): readonly string[] {
  return [...Object.entries(top).map(([key, value]) => `${key} = ${value}`), ...tables.flat()];
}

/** Returns the file's values with those of the block. If both have a key, the block's value counts. */
function withBlock(before: Toml, own: Toml): Toml {
  const { model_providers: others } = before;
  const { model_providers: ours, ...top } = own;
  if (ours === undefined) return { ...before, ...top };
  return { ...before, ...top, model_providers: { ...asRecord(others), ...asRecord(ours) } };
}

function revert(text: string, change: NonNullable<ClientChange['toml']>): Reverted {
  const reverted = removeBlock(text, change);
  if (typeof reverted === 'string') return reverted;
  const before = parseToml(reverted.text);
  const own = parseToml(change.lines.join('\n')) ?? {};
  const aside = parseToml(change.aside.join('\n')) ?? {};
  const wanted = withBlock(withoutBlock(parseToml(text) ?? {}, own), aside);
  // If the user added a key to a table of the block, the removal has moved that key into the table above the block.
  return isSameValue(before, wanted) ? reverted : 'edited';
}

function withoutBlock(now: Toml, own: Toml): Toml {
  const providers = asRecord(now['model_providers']);
  const ours = asRecord(own['model_providers']);
  const others = Object.entries(providers).filter(
    ([name, value]) => !isSameValue(value, ours[name]),
  );
  const { model_providers: _, ...top } = now;
  const kept = Object.fromEntries(Object.entries(top).filter(([key]) => !Object.hasOwn(own, key)));
  return others.length === 0 ? kept : { ...kept, model_providers: Object.fromEntries(others) };
}

/**
 * Returns the name of the selected profile if that profile names a provider, which overrides the one at the top level.
 */
export async function profileIn(path: string): Promise<string | undefined> {
  const toml = parseToml((await readForeignFile(path)).text ?? '');
  const profile = typeof toml?.['profile'] === 'string' ? toml['profile'] : '';
  const chosen = asRecord(asRecord(toml?.['profiles'])[profile]);
  return chosen['model_provider'] === undefined ? undefined : profile;
}
