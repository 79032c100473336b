import { expect } from 'vitest';
import { CLIENT_PACKAGES, type ClientName } from './installed-client.ts';

/** What a client loses of its thinking in a whole session. */
export interface Loss {
  /** Answers of status 400 that reached the client. */
  readonly refused: number;
  /** Thoughts that the provider dropped, each once. */
  readonly lost: number;
  /** Thoughts in the last request. */
  readonly kept: number;
}

/** Whether the sessions are played without svc too: SVC_TEST_ALONE=1 measures what this table has. */
export const IS_ALONE_ASKED = process.env['SVC_TEST_ALONE'] === '1';

/** The versions that were measured. Those of another one are measured again in each run. */
const MEASURED: Readonly<Partial<Record<ClientName, string>>> = {
  claude: '2.1.332',
  codex: '0.171.0',
  pi: '1.6.0',
};

/** What each client loses without svc, against test/support/strict-provider: the same in every run. */
const LOSSES: Readonly<Record<string, readonly [refused: number, lost: number, kept: number]>> = {
  'claude, new account, compaction': [1, 0, 4],
  'claude, new account, fork': [0, 0, 12],
  'claude, new account, MCP server, tool search false': [1, 0, 4],
  'claude, new account, MCP server, tool search true': [0, 0, 8],
  'claude, new account, late MCP server, tool search false': [1, 0, 6],
  'claude, new account, late MCP server, tool search true': [0, 0, 10],
  'claude, new account, rewind': [0, 0, 11],
  'claude, old account, compaction': [0, 1, 5],
  'claude, old account, MCP server, tool search false': [0, 4, 8],
  'claude, old account, late MCP server, tool search false': [0, 4, 10],
  'codex, new account, compaction': [0, 2, 6],
  'codex, new account, fork': [0, 4, 12],
  'codex, new account, MCP server, tool search false': [0, 4, 8],
  'codex, new account, rewind': [0, 0, 11],
  'claude, hooks, compaction': [1, 0, 5],
  'claude, hooks, fork': [0, 0, 9],
  'codex, hooks, compaction': [0, 2, 7],
  'codex, hooks, fork': [0, 20, 9],
  'pi, hooks, fork': [0, 0, 9],
};

/** What the client loses without svc: as it was measured, or else as `measure` plays it now. */
export async function lossAlone(
  name: ClientName,
  title: string,
  measure: () => Promise<Loss>,
): Promise<Loss> {
  const measured = lossMeasured(name, title);
  if (measured !== undefined && !IS_ALONE_ASKED) return measured;
  const loss = await measure();
  if (measured !== undefined) expect(loss, `${name}, ${title}, without svc`).toEqual(measured);
  return loss;
}

function lossMeasured(name: ClientName, title: string): Loss | undefined {
  const losses = LOSSES[`${name}, ${title}`];
  const isSame = Object.values(CLIENT_PACKAGES[name]).join() === MEASURED[name];
  if (losses === undefined || !isSame) return undefined;
  const [refused, lost, kept] = losses;
  return { refused, lost, kept };
}
