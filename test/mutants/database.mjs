/** A database server that moves, and limits beside it; see list.mjs. */

const ORIGIN = 'service/src/adapters/postgres-store/postgres-service-store.ts';
const CONNECTIONS = 'service/src/adapters/postgres-store/connections.ts';
const SESSION = 'service/src/adapters/postgres-store/session.ts';
const SEARCH = 'service/src/adapters/postgres-store/server-search.ts';
const FAILOVER = 'service/test/adapters/postgres-failover.test.ts';
const TROUBLE = 'service/test/adapters/postgres-trouble.test.ts';

export const DATABASE = [
  {
    name: 'a look into PostgreSQL checks neither its server nor its time',
    file: SESSION,
    from: 'if (begin === undefined) return [asked];',
    to: 'if (begin === undefined) return [];',
    test: 'service/test/adapters/postgres-connections.test.ts',
    only: 'one statement alone',
  },
  {
    name: 'a promoted standby goes on with the generation that clients know',
    file: ORIGIN,
    from: "    if (verdict === 'replaced') await newEpochIn(rows);\n",
    to: '',
    test: FAILOVER,
    only: 'an asynchronous standby',
  },
  {
    name: 'a primary from before is written to',
    file: SEARCH,
    from: 'origin?.system === newest?.system && timelineNumber(origin) < timelineNumber(newest)',
    to: 'origin?.system === newest?.system && timelineNumber(origin) < -99',
    test: FAILOVER,
    only: 'from before',
  },
  {
    name: 'a transaction does not look whether the server is another one',
    file: SESSION,
    from: " || row['timeline'] !== origin.timeline;",
    to: " || row['timeline'] === '';",
    test: FAILOVER,
    only: 'a pooler that moves',
  },
  {
    name: 'a commit waits for ever',
    file: SESSION,
    from: "answered(this.#client.query('COMMIT'), COMMIT_MS)",
    to: "answered(this.#client.query('COMMIT'), COMMIT_MS * 1000)",
    test: FAILOVER,
    only: 'a standby of its own',
  },
  {
    name: 'a commit that is on no standby counts',
    file: SESSION,
    from: "    if (isWarned) throw new UncertainCommit('No standby has the commit.');\n",
    to: '',
    test: FAILOVER,
    only: 'whose wait is ended',
  },
  {
    name: 'recalls take the connections of keys',
    file: CONNECTIONS,
    from: 'new Slots(Math.ceil(connectionsMax * (1 - RESERVED_SHARE)))',
    to: 'new Slots(connectionsMax)',
    test: TROUBLE,
    only: 'a full pool',
  },
  {
    name: 'a move believes the digest that it sent',
    file: 'service/src/adapters/postgres-store/move-target.ts',
    from: 'contentDigest(bytes) === digest',
    to: "bytes.length > 0 && digest !== ''",
    test: 'service/test/cli/service-move.test.ts',
    only: 'half filled',
  },
  {
    name: 'the counts of purged words stay',
    file: 'service/src/adapters/postgres-store/statements/index.ts',
    from: 'DELETE FROM word_counts WHERE tenant_id = $1 AND space_id = $2`',
    to: 'DELETE FROM word_counts WHERE tenant_id = $1 AND space_id = $2 AND found < 0`',
    test: 'service/test/adapters/postgres-word-counts.test.ts',
  },
];
