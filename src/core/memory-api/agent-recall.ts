import { isoTime } from '../memory/times.ts';
import type { AgentFacts, RecalledExchange, RecalledSession } from '../recall/agent-facts.ts';
import type { RecallAnswer, RecallRequest } from './contract.ts';
import { BRANCH_CHARS_MAX, SESSION_CHARS_MAX } from './limits.ts';

/** Converts the members of a recall that only a proxy asks for to the memory API's form and back. */

type WireAgent = NonNullable<RecallRequest['agent']>;
type WireExchange = NonNullable<RecallAnswer['exchanges']>[number];
type WireSession = NonNullable<RecallAnswer['sessions']>[number];

export function wireAgent(agent: AgentFacts): WireAgent {
  return {
    session_id: agent.conversation.slice(0, SESSION_CHARS_MAX),
    branch: agent.branch.slice(0, BRANCH_CHARS_MAX),
    quiet_share: agent.quietShare,
    brief_tokens: agent.briefTokensMax,
  };
}

export function agentOf({ session_id, branch = '', ...agent }: WireAgent): AgentFacts {
  const { quiet_share: quietShare, brief_tokens: briefTokensMax } = agent;
  return { conversation: session_id, branch, quietShare, briefTokensMax };
}

/** Copies only these fields: everything else that a store knows about an exchange must stay on its machine. */
export function exchangeOf(exchange: RecalledExchange): WireExchange {
  const { ref, records, space, client, at, quotes } = exchange;
  return { ref, records, space, client, observed_at: isoTime(at), quotes: [...quotes] };
}

export function exchangeIn({
  ref,
  records = [],
  space,
  client = '',
  observed_at,
  quotes,
}: WireExchange): RecalledExchange {
  return { ref, records, space, client, at: Date.parse(observed_at), quotes };
}

export function sessionOf({ at, title, space, records }: RecalledSession): WireSession {
  return { observed_at: isoTime(at), title, space, records };
}

export function sessionIn(session: WireSession): RecalledSession {
  const { observed_at, title, space = '', records = [] } = session;
  return { at: Date.parse(observed_at), title, space, records };
}
