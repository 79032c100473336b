/** The statements on the server itself. They read no table of svc, so they name no tenant. */

/** The number of the timeline as the WAL's file name tells it: its first eight digits. */
const TIMELINE = `CASE WHEN pg_is_in_recovery() THEN NULL
  ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END AS timeline`;

export const SERVER = {
  isStandby: `SELECT pg_is_in_recovery() AS standby`,
  /**
   * Which database this is. A copy of its files has the same system identifier, and a dump that was read
   * in has another table `meta`.
   */
  origin: `SELECT pg_is_in_recovery() AS standby, ${TIMELINE},
      (SELECT system_identifier FROM pg_control_system())::text || '.'
        || coalesce(to_regclass('meta')::oid::text, '') AS system,
      current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local') AS synchronous`,
  /** Sent with the beginning of each transaction: a pooler may have moved to another server. */
  stillWrites: `SELECT pg_is_in_recovery() AS standby, ${TIMELINE}`,
  stillWritesUntold: `SELECT pg_is_in_recovery() AS standby, '' AS timeline`,
} as const;
