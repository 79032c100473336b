import type { Dialect } from '../conversation/view.ts';
import type { TranscriptClient } from '../memory/transcript-forms.ts';

/**
 * The clients whose hooks can add memories: each stores a hook's text in its own transcript and sends it again with
 * every later request. A hook that only changes the next request (such as BeforeModel of Gemini) is not used, because
 * the text would be missing later, and a provider may have bound thinking to it.
 */

/**
 * What a hook's event means. `start`: a session begins or is resumed. `prompt`: the user has sent a prompt. `tool`: a
 * tool has run. `compacted`: the client summarises the history, so the texts of earlier hooks are gone. `stop`: an
 * answer has ended. `end`: the session has ended.
 */
export type HookKind = 'start' | 'prompt' | 'tool' | 'compacted' | 'stop' | 'end';

export interface HookClient {
  /** The client's name in records and requests. */
  readonly client: string;
  /** The kind of each of the client's events. */
  readonly events: Readonly<Record<string, HookKind>>;
  /**
   * The forms of the client's transcript and of the messages in it; undefined if its events have all that svc needs.
   */
  readonly transcript?: { readonly client: TranscriptClient; readonly dialect: Dialect };
  /** The form of the answer; see hookAnswer. */
  readonly form: 'claude' | 'codex' | 'copilot' | 'plugin';
}

/** Sources: code.claude.com/docs/en/hooks (2026-08-22), and events of Claude Code and Codex recorded on 2026-11-24. */
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
  // docs.github.com/en/copilot/reference/hooks-reference (2026-11). sessionStart is no event of svc, because Copilot
  // does not keep its text for a resumed session (1.0.102, seen 2026-11-30). The first prompt gets the list of sessions
  // instead.
  copilot: {
    client: 'copilot',
    events: {
      userPromptTransformed: 'prompt',
      postToolUse: 'tool',
      preCompact: 'compacted',
      agentStop: 'stop',
      sessionEnd: 'end',
    },
    // Only the event agentStop names the transcript, and agentStop has neither prompt nor answer.
    transcript: { client: 'copilot', dialect: 'anthropic_messages' },
    form: 'copilot',
  },
  // opencode and pi use svc's own plugins, which are in plugins/.
  opencode: { client: 'opencode', events: pluginEvents(), form: 'plugin' },
  pi: { client: 'pi', events: pluginEvents(), form: 'plugin' },
} as const satisfies Readonly<Record<string, HookClient>>;

/** Returns what a client's event means to svc; undefined if svc ignores it. */
export function kindOf({ events }: HookClient, event: string): HookKind | undefined {
  return Object.hasOwn(events, event) ? events[event] : undefined;
}

const BY_NAME: ReadonlyMap<string, HookClient> = new Map(Object.entries(HOOK_CLIENTS));

export function hookClient(name: string): HookClient | undefined {
  return BY_NAME.get(name);
}

function pluginEvents(): HookClient['events'] {
  const kinds: readonly HookKind[] = ['start', 'prompt', 'tool', 'compacted', 'stop', 'end'];
  return Object.fromEntries(kinds.map((kind) => [kind, kind]));
}
