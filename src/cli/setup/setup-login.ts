import { type LoginFacts, LOGINS } from '../../core/http/logins.ts';
import { LOGIN_STYLES } from '../../core/settings/config-upstreams.ts';
import type { UpstreamDraft } from '../../core/settings/config-draft.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext } from '../context.ts';
import { noteNext, saveConfig } from './setup-save.ts';

/**
 * `svc setup --login claude|codex`: svc passes the client's own subscription login on. A person
 * must opt in knowingly: the question states the risk, and `--yes` does not answer it.
 */

export interface LoginOptions {
  readonly login: string;
  readonly replace?: boolean;
}

/** Asks a person on the terminal; undefined without one: then stdin must hold the answer. */
export type Confirm = (message: string) => Promise<boolean>;

/** Stated before the question, from the providers' own terms and this program's own rules. */
export const LOGIN_RISK = [
  'With a login, svc passes on the requests of your own client, on your own machine, with the login that the client sends. svc never logs in. It never reads, stores, refreshes or lends a login.',
  'Your provider decides whether it accepts a client with another base URL. Anthropic’s terms allow a subscription login for Claude Code and claude.ai, and forbid third parties to offer it or to route requests through it for their users. The provider may limit or close an account.',
  'With the newest models, a conversation in which svc placed a memory cannot continue without svc: Claude Code repairs it once and loses the model’s earlier thinking.',
  'A custom base URL also disables some features of Claude Code, such as managed settings and Remote Control.',
];

export function loginQuestion({ client, baseUrl }: LoginFacts): string {
  return `Pass the login of ${client} on to ${baseUrl}?`;
}

export function loginUpstream({ login, baseUrl }: LoginFacts): UpstreamDraft {
  return { name: `${login}-login`, apiStyle: LOGIN_STYLES[login], baseUrl, auth: 'client' };
}

export async function setupLogin(
  { login: name, replace = false }: LoginOptions,
  context: CommandContext,
  confirm: Confirm | undefined,
): Promise<void> {
  const { terminal } = context;
  const known = Object.values(LOGINS).find(({ login }) => login === name);
  if (known === undefined) {
    throw new CliError('--login: expected claude or codex.', 'See: svc setup --help', 2);
  }
  const { login } = known;
  for (const line of LOGIN_RISK) terminal.note(line);
  const question = loginQuestion(known);
  const isWanted = confirm === undefined ? await answeredByInput(context) : await confirm(question);
  if (!isWanted) {
    throw new CliError(
      'Nothing was changed: the login was not turned on.',
      `Answer yes on a terminal, or: echo yes | svc setup --login ${login}`,
    );
  }
  const changes = { upstreams: [loginUpstream(known)], settings: {}, removed: [], replace };
  const saved = await saveConfig(changes, context);
  terminal.note(
    'Shortening is off for this login, because a subscription is not billed per token. Memory is on.',
  );
  noteNext(saved, terminal);
}

const ANSWER_CHARS_MAX = 100;

async function answeredByInput({ stdin }: CommandContext): Promise<boolean> {
  if (stdin === undefined || stdin.isTTY === true) return false;
  let text = '';
  for await (const piece of stdin) {
    text += typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
    if (text.length > ANSWER_CHARS_MAX) return false;
  }
  return /^y(?:es)?$/i.test(text.trim());
}
