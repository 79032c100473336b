import type { ServerFacts } from '../../ports/service-store.ts';
import { Connections } from './connections.ts';
import type { ServerAddress } from './server-url.ts';
import { DAYS } from './statements/upkeep.ts';
import { SERVER } from './statements/server.ts';

/** Tells a person about a database server: `svc-service doctor`. */

interface ActivityRow {
  readonly version: string;
  readonly host: string | null;
  readonly port: number | null;
  readonly slow: number;
  readonly slowest_ms: number;
  readonly waiting_commits: number;
}

interface StandbyRow {
  readonly name: string;
  readonly state: string | null;
  readonly sync: string | null;
  readonly lag_bytes: number | null;
  readonly lag_ms: number | null;
}

/** Throws MemoryError for a server that cannot be asked. */
export async function inspectServer(address: ServerAddress): Promise<ServerFacts> {
  const connections = new Connections({ server: address, connectionsMax: 1 });
  try {
    const origin = await connections.origin();
    return await connections.read(async (rows) => {
      const activity = await rows.get<ActivityRow>(SERVER.activity);
      const standbys = await rows.all<StandbyRow>(SERVER.standbys);
      const days = await rows.all<{ name: string }>(DAYS.list);
      return {
        version: activity?.version ?? '',
        host: `${address.host}:${address.port}`,
        isSynchronous: origin.isSynchronous,
        standbys: standbys.map(({ name, state, sync, lag_bytes: bytes, lag_ms: ms }) => ({
          name,
          isStreaming: state === 'streaming',
          isSynchronous: sync === 'sync' || sync === 'quorum',
          // Another user than the owner of the server is not told.
          ...(bytes === null ? {} : { lagBytes: bytes }),
          ...(ms === null ? {} : { lagMs: ms }),
        })),
        lastDay: days
          .map(({ name }) => name.slice(-8))
          .toSorted()
          .at(-1),
        slowStatements: activity?.slow ?? 0,
        slowestMs: activity?.slowest_ms ?? 0,
        waitingCommits: activity?.waiting_commits ?? 0,
      };
    });
  } finally {
    await connections.close();
  }
}
