import type { ServerFacts } from '../../ports/service-store.ts';
import { Connections } from './connections.ts';
import type { ServerAddress } from './server-url.ts';
import { SERVER } from './statements/server.ts';

/** Tells a person about a database server: `svc-service doctor`. */

interface StandbyRow {
  readonly name: string;
  readonly state: string | null;
  readonly sync: string | null;
}

/** Throws MemoryError for a server that cannot be asked. */
export async function inspectServer(address: ServerAddress): Promise<ServerFacts> {
  const connections = new Connections({ server: address, connectionsMax: 1 });
  try {
    const { isSynchronous } = await connections.origin();
    return await connections.read(async (rows) => {
      const row = await rows.get<{ version: string }>(SERVER.version);
      const standbys = await rows.all<StandbyRow>(SERVER.standbys);
      return {
        version: row?.version ?? '',
        host: `${address.host}:${address.port}`,
        isSynchronous,
        standbys: standbys.map(({ name, state, sync }) => ({
          name,
          isStreaming: state === 'streaming',
          isSynchronous: sync === 'sync' || sync === 'quorum',
        })),
      };
    });
  } finally {
    await connections.close();
  }
}
