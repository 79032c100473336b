import type { Dialect } from '../../core/conversation/view.ts';
import type { JsonChange } from '../../core/foreign/client-change.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import { CliError } from '../cli-error.ts';

/** One row of the table of clients beside Claude Code and Codex. */

export interface OtherClient {
  /** As a person types it. */
  readonly name: string;
  readonly title: string;
  /** The name in the search path. */
  readonly program: string;
  /** The command that installs it. */
  readonly install: string;
  /** The dialects that it can speak to svc, the best one first. */
  readonly dialects: readonly [Dialect, ...Dialect[]];
  /** For `svc run`; none for an editor. The token is in SVC_LOCAL_PROXY_TOKEN besides. Throws CliError where it cannot be done. */
  launch?(facts: OtherLaunchFacts): OtherLaunch;
  /** For `svc print-config`: complete, and without the token wherever the client can read a variable. */
  print(facts: ClientFacts): Printed;
  /** In these dialects its settings name a model, which the person must give. */
  readonly needsModel?: readonly Dialect[];
  /** For `svc connect`: its own file, or a sentence that says why svc changes none. */
  readonly file: OtherFile | string;
}

export interface ClientFacts {
  /** The proxy's address for this client, without /v1: the requests need not name the client. */
  readonly url: string;
  /** The same with a token for model routes in its path: for files that can run no command. */
  readonly urlWithToken: string;
  readonly environment: Environment;
  /** Those of the client's dialects that have a provider with a key. At least one. */
  readonly spoken: readonly Dialect[];
  /** The model that the person named, without a provider's name. */
  readonly model: string | undefined;
}

export interface OtherLaunchFacts extends ClientFacts {
  readonly localToken: string;
  /** The person's own arguments. */
  readonly args: readonly string[];
  /** The folder of this program's own scripts. */
  readonly scripts: string;
}

export interface OtherLaunch {
  readonly args: readonly string[];
  /** Over those of the shell; undefined takes one away. */
  readonly variables: Environment;
}

export interface Printed {
  readonly text: string;
  /** Where the text belongs, and what else to do. */
  readonly notes: readonly string[];
}

export interface OtherFile {
  path(environment: Environment): string;
  /** The remedy where a person has the file in a form that svc does not edit. */
  readonly otherForm?: string;
  settings(facts: FileFacts): readonly Omit<JsonChange, 'before'>[];
  /** The client runs the token command, which starts the proxy where none runs. */
  readonly asksToken: boolean;
  /** What the person must still do. */
  readonly afterwards?: string;
}

export interface FileFacts extends ClientFacts {
  /** Prints the local token and starts the proxy. */
  readonly tokenCommand: string;
}

/** The model behind `-m`, `--model` or `--model=`, without the provider's name that svc gives it. */
export function modelIn(args: readonly string[]): string | undefined {
  const at = args.findIndex((arg) => arg === '-m' || arg === '--model');
  const joined = args.find((arg) => arg.startsWith('--model='))?.slice('--model='.length);
  const model = joined ?? (at === -1 ? undefined : args[at + 1]);
  return model?.replace(/^svc\//, '');
}

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
