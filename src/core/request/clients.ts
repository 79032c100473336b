/** The clients that svc knows: how they name themselves, and what it may rely on in each. */

/** Names the client where its own headers do not. The gate fills it in from the address. */
export const CLIENT_HEADER = 'x-svc-client';

/** The client that a User-Agent names; 'unknown' where svc does not know the name. */
export function clientOfAgent(agent: string): string {
  const head = agent.slice(0, AGENT_CHARS_MAX);
  return AGENTS.find(([pattern]) => pattern.test(head))?.[1] ?? 'unknown';
}

/** Clients name themselves at the beginning. */
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

export interface ClientFacts {
  /**
   * svc can separate its own texts from typed ones. The typed text of every other client is
   * unverified.
   */
  readonly isKnown: boolean;
  /** It states its project folder in every conversation. */
  readonly statesFolder: boolean;
  /** It never states one: a line about a folder in its texts is a quoted one. */
  readonly quotesFolders: boolean;
  /**
   * It states the folder in a part that describes its environment, so another line about a folder is a quoted one.
   * For every other client such a part is the quoted one.
   */
  readonly statesPlace: boolean;
  /** Its main requests always offer tools: one without any is a title, a topic or a check. */
  readonly alwaysOffersTools: boolean;
  /** It keeps its conversation's id in `prompt_cache_key`; elsewhere that is a label. */
  readonly cacheKeyNamesSession: boolean;
}

const AGENT: ClientFacts = {
  isKnown: true,
  statesFolder: true,
  quotesFolders: false,
  statesPlace: false,
  alwaysOffersTools: true,
  cacheKeyNamesSession: false,
};

const UNKNOWN: ClientFacts = {
  isKnown: false,
  statesFolder: false,
  quotesFolders: false,
  statesPlace: false,
  alwaysOffersTools: false,
  cacheKeyNamesSession: false,
};

/** The client of `svc demo`. */
export const DEMO_CLIENT = 'svc-demo';

const CLIENTS: ReadonlyMap<string, ClientFacts> = new Map([
  ['claude-code', { ...AGENT, statesPlace: true }],
  ['codex', { ...AGENT, cacheKeyNamesSession: true }],
  ['opencode', { ...AGENT, statesPlace: true, cacheKeyNamesSession: true }],
  ['qwen', AGENT],
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

/** Some versions of pi name only the SDK that they use; their system prompt says more. */
export function isPiPrompt(systemHead: string): boolean {
  return systemHead.includes('operating inside pi, a coding agent harness');
}
