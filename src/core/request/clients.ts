/** The clients that svc knows: how to recognise each, and what svc may rely on. */

/** The header that names the client. svc's gate sets it from the request's path; see core/http/gate.ts. */
export const CLIENT_HEADER = 'x-svc-client';

/** Returns the client that a User-Agent names; 'unknown' if svc does not know it. */
export function clientOfAgent(agent: string): string {
  const head = agent.slice(0, AGENT_CHARS_MAX);
  return AGENTS.find(([pattern]) => pattern.test(head))?.[1] ?? 'unknown';
}

/** Characters of the User-Agent that are searched: clients name themselves at its beginning. */
const AGENT_CHARS_MAX = 256;

const AGENTS: readonly (readonly [pattern: RegExp, client: string])[] = [
  [/^claude-cli\//, 'claude-code'],
  [/^codex/, 'codex'],
  [/^opencode\//, 'opencode'],
  [/(?:^|[\s(])qwen-?code\b/i, 'qwen'],
  [/copilot/i, 'copilot'],
  [/(?:^|[\s(])roo-?code\b/i, 'roo'],
  [/(?:^|[\s(])kilo-?code\b/i, 'kilo'],
  [/(?:^|[\s(])cline\b/i, 'cline'],
  [/(?:^|[\s(])continue(?:-?cli|-?dev)?\b/i, 'continue'],
  [/(?:^|[\s(])pi(?:-coding-agent|-ai)?\//i, 'pi'],
  [/(?:^|[\s(])aider\b/i, 'aider'],
  [/(?:^|[\s(])gemini-?cli\b/i, 'gemini'],
];

/** Matches the end of a name with which Claude Code asks for a window of a million tokens: "claude-opus-5-5[1m]". */
export const LONG_MARK = /\[1m\]$/i;

export interface ClientFacts {
  /** True if svc can distinguish this client's own texts from typed ones. Otherwise typed text counts as unverified. */
  readonly isKnown: boolean;
  /** True if the client states its project folder in every conversation. */
  readonly statesFolder: boolean;
  /** True if the client never states a folder: a line about one in its texts comes from a file. */
  readonly quotesFolders: boolean;
  /**
   * True if the client states its folder in a part of the system prompt that describes its environment; see `place` of
   * StatedProject. For other clients such a part counts no more than other lines.
   */
  readonly statesPlace: boolean;
  /**
   * Set if the client states its folder in a user message of its own. 'only': a folder in its system texts is a
   * quotation, as of a project's rules. 'first': such a folder counts if the message states none.
   */
  readonly statesInMessage?: 'only' | 'first';
  /**
   * True if the client's main requests always offer tools, so that its requests without tools are side calls; see
   * shapeKind().
   */
  readonly alwaysOffersTools: boolean;
  /** True if the client puts its conversation's id into `prompt_cache_key`; others use that as a label. */
  readonly cacheKeyNamesSession: boolean;
}

const UNKNOWN: ClientFacts = {
  isKnown: false,
  statesFolder: false,
  quotesFolders: false,
  statesPlace: false,
  alwaysOffersTools: false,
  cacheKeyNamesSession: false,
};

const AGENT: ClientFacts = {
  ...UNKNOWN,
  isKnown: true,
  statesFolder: true,
  alwaysOffersTools: true,
};

export const DEMO_CLIENT = 'svc-demo';

const CLIENTS: ReadonlyMap<string, ClientFacts> = new Map([
  ['claude-code', { ...AGENT, statesPlace: true }],
  ['codex', { ...AGENT, statesInMessage: 'only', cacheKeyNamesSession: true }],
  ['opencode', { ...AGENT, statesPlace: true, cacheKeyNamesSession: true }],
  ['qwen', { ...AGENT, statesInMessage: 'first' }],
  ['copilot', AGENT],
  ['pi', { ...AGENT, cacheKeyNamesSession: true }],
  ['cline', { ...AGENT, alwaysOffersTools: false }],
  [DEMO_CLIENT, { ...AGENT, statesFolder: false, alwaysOffersTools: false }],
  ['continue', { ...AGENT, statesFolder: false, quotesFolders: true, alwaysOffersTools: false }],
  ['roo', { ...UNKNOWN, statesPlace: true }],
  ['kilo', { ...UNKNOWN, statesPlace: true }],
  ['aider', { ...UNKNOWN, quotesFolders: true }],
]);

export function clientFacts(client: string): ClientFacts {
  return CLIENTS.get(client) ?? UNKNOWN;
}
