import type { Dialect } from '../conversation/view.ts';
import type { TranscriptClient } from '../memory/transcript-forms.ts';

/**
 * The clients whose hooks carry memory: each keeps what a hook returns in its own transcript and sends it again
 * with every later request. A client that builds its requests anew (the message builder of Cline, the transforms
 * of opencode, BeforeModel of Gemini) would change what a provider has bound to thinking, so none is here.
 */

/**
 * What a hook's event means. `start`: a session begins or is resumed. `compacted`: what was placed is gone.
 * `stop`: an answer has ended. `end`: the session has.
 */
export type HookKind = 'start' | 'prompt' | 'tool' | 'compacted' | 'stop' | 'end';

export interface HookClient {
  /** As records and requests name it. */
  readonly client: string;
  /** The kind of each of the client's events. */
  readonly events: Readonly<Record<string, HookKind>>;
  /** How the client keeps the session on disk; undefined where its events bring all that svc needs. */
  readonly transcript?: { readonly client: TranscriptClient; readonly dialect: Dialect };
  /** The form of an answer. */
  readonly form: 'claude' | 'codex' | 'copilot' | 'plugin';
}

/** code.claude.com/docs/en/hooks (2026-08-22), and both clients' own events, recorded on 2026-11-24. */
const CLAUDE_EVENTS: HookClient['events'] = {
  SessionStart: 'start',
  UserPromptSubmit: 'prompt',
  PostToolUse: 'tool',
  PostToolUseFailure: 'tool',
  PreCompact: 'compacted',
  PostCompact: 'compacted',
  Stop: 'stop',
  SessionEnd: 'end',
};

export const HOOK_CLIENTS = {
  claude: {
    client: 'claude-code',
    events: CLAUDE_EVENTS,
    transcript: { client: 'claude-code', dialect: 'anthropic_messages' },
    form: 'claude',
  },
  codex: {
    client: 'codex',
    events: CLAUDE_EVENTS,
    transcript: { client: 'codex', dialect: 'openai_responses' },
    form: 'codex',
  },
  // docs.github.com/en/copilot/reference/hooks-reference (2026-11).
  copilot: {
    client: 'copilot',
    events: {
      sessionStart: 'start',
      userPromptTransformed: 'prompt',
      postToolUse: 'tool',
      preCompact: 'compacted',
      agentStop: 'stop',
      sessionEnd: 'end',
    },
    // Only agentStop names it, and says neither what was asked nor what was answered.
    transcript: { client: 'copilot', dialect: 'anthropic_messages' },
    form: 'copilot',
  },
  // The names of svc's own plugins for these two, in plugins/.
  opencode: { client: 'opencode', events: pluginEvents(), form: 'plugin' },
  pi: { client: 'pi', events: pluginEvents(), form: 'plugin' },
} as const satisfies Readonly<Record<string, HookClient>>;

/** Returns what svc does at a client's event; undefined if it does nothing there. */
export function kindOf({ events }: HookClient, event: string): HookKind | undefined {
  return Object.hasOwn(events, event) ? events[event] : undefined;
}

export type HookClientName = keyof typeof HOOK_CLIENTS;

export function hookClient(name: string): HookClient | undefined {
  return Object.hasOwn(HOOK_CLIENTS, name)
    ? // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- It is one of its own names.
      HOOK_CLIENTS[name as HookClientName]
    : undefined;
}

function pluginEvents(): HookClient['events'] {
  const kinds: readonly HookKind[] = ['start', 'prompt', 'tool', 'compacted', 'stop', 'end'];
  return Object.fromEntries(kinds.map((kind) => [kind, kind]));
}
