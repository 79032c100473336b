/** The statements about the server itself. They read no table of svc, so they name no tenant. */

/** SQL for the server's timeline: the first eight digits of the name of its write-ahead log file. */
const TIMELINE = `CASE WHEN pg_is_in_recovery() THEN NULL
  ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline`;

/** SQL that sets the deadline of statements until the end of the transaction, like SET LOCAL. */
const STATEMENT_TIMEOUT = `set_config('statement_timeout', $1, true)`;

/** Milliseconds since 1970 by the database's clock. */
export const POSTGRES_NOW = `CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)`;

export const SERVER = {
  isStandby: `SELECT pg_is_in_recovery() AS standby`,
  /**
   * Reads the server's state and the identity of its database, `system`: the system identifier and the OID of the
   * table `service_meta`. A copy of the files, such as a standby, has the same identity. A restored dump has another.
   */
  origin: `SELECT pg_is_in_recovery() AS standby, ${TIMELINE},
      (SELECT system_identifier FROM pg_control_system())::text || '.'
        || coalesce(to_regclass('service_meta')::oid::text, '') AS system,
      current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local') AS synchronous`,
  /**
   * Sent at the beginning of each transaction and before a single statement, because a pooler may have connected
   * another server. $1: the deadline of each statement in milliseconds.
   */
  stillWrites: `SELECT ${STATEMENT_TIMEOUT}, pg_is_in_recovery() AS standby, ${TIMELINE}`,
  /** Does the same as `stillWrites`, for a server that does not report its timeline. */
  stillWritesUntold: `SELECT ${STATEMENT_TIMEOUT}, pg_is_in_recovery() AS standby, '' AS timeline`,
  size: `SELECT current_setting('server_version') AS version,
      pg_database_size(current_database()) AS bytes`,
  standbys: `SELECT coalesce(application_name, '') AS name, state, sync_state AS sync
    FROM pg_stat_replication ORDER BY application_name`,
} as const;
