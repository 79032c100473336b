import type { JsonChange } from '../../core/foreign/client-change.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { CliError } from '../cli-error.ts';

/** The common part of several clients' settings: named providers in a JSON object. */

export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}

/** Chat Completions alone needs a model's name, because the client has no list of the provider's models. */
export function requireProviders(program: string, providers: object): void {
  if (Object.keys(providers).length > 0) return;
  throw new CliError(
    `${program} needs the name of a model of your provider.`,
    `svc print-config ${program} --model MODEL, or with svc run: --model svc/MODEL`,
  );
}

/** Each leaf by itself, so that what a person adds beside it stays when it is taken out again. */
export function entriesOf(
  path: readonly string[],
  value: unknown,
): readonly Omit<JsonChange, 'before'>[] {
  if (!isRecord(value)) return [{ path, value }];
  return Object.entries(value).flatMap(([key, inner]) => entriesOf([...path, key], inner));
}
