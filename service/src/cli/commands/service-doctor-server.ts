import type { ServerFacts, StandbyFacts } from '../../ports/server-facts.ts';
import {
  type DatabaseServer,
  inspectDatabase,
  serverOf,
  type ServicePlace,
} from '../compose-database.ts';
import { lookAtLimiter } from '../compose-limiter.ts';
import type { Check } from '../../../../src/cli/doctor/doctor-checks.ts';
import { count } from '../../../../src/cli/listing.ts';
import { MemoryError } from '../../../../src/core/errors.ts';

/** The database server of a service and its limiter: whether it takes writes, and what a switch would do. */

/** Days of receipts are made a week ahead, once an hour. */
const DAYS_AHEAD_MIN = 2;
const DAY_MS = 24 * 3600 * 1000;
/** A standby of the same place is some milliseconds behind. */
const LAG_BYTES_MAX = 64 * 1024 ** 2;

/** None for a service in a file. */
export async function checkServer(place: ServicePlace): Promise<readonly Check[]> {
  const server = await serverOf(place);
  if (server === undefined) return [];
  try {
    const facts = await inspectDatabase(server);
    return [
      hostCheck(facts),
      ...standbyChecks(facts),
      switchCheck(facts, server),
      ...dayChecks(facts),
      statementCheck(facts),
    ];
  } catch (error) {
    if (!(error instanceof MemoryError)) throw error;
    const fix = 'Start the server, or promote a standby and lead the address to it.';
    return [{ level: 'problem', subject: 'Server', found: error.message, fix }];
  }
}

function hostCheck({ version, host }: ServerFacts): Check {
  return { level: 'ok', subject: 'Server', found: `PostgreSQL ${version}, ${host} writes` };
}

function standbyChecks({ standbys, waitingCommits, isSynchronous }: ServerFacts): readonly Check[] {
  const subject = 'Standbys';
  const streaming = standbys.filter(({ isStreaming }) => isStreaming);
  const awaited = standbys.filter((one) => one.isSynchronous);
  if (isSynchronous && awaited.length === 0) {
    const found = `commits wait for a standby that is not there (${waitingCommits} at this moment)`;
    const fix = 'Attach a standby, or empty synchronous_standby_names on the primary.';
    return [{ level: 'problem', subject, found, fix }];
  }
  if (streaming.length === 0) return [];
  const behind = streaming.filter(({ lagBytes = 0 }) => lagBytes > LAG_BYTES_MAX);
  const found = streaming.map(standbyText).join('; ');
  if (behind.length === 0) return [{ level: 'ok', subject, found }];
  const fix = 'A promotion now would lose the commits that it lacks. Check its load and network.';
  return [{ level: 'warning', subject, found, fix }];
}

function standbyText({ name, isSynchronous, lagBytes, lagMs }: StandbyFacts): string {
  const lag = lagBytes === undefined ? 'lag unknown' : `${Math.ceil(lagBytes / 1024)} KiB behind`;
  const time = lagMs === undefined ? '' : `, ${lagMs} ms`;
  return `${name === '' ? 'one' : name}, ${isSynchronous ? 'synchronous' : 'asynchronous'}, ${lag}${time}`;
}

/** In words: what clients would notice of a promotion at this moment. */
function switchCheck(
  { standbys, isSynchronous }: ServerFacts,
  { trustsFailover }: DatabaseServer,
): Check {
  const subject = 'Switch';
  if (!standbys.some(({ isStreaming }) => isStreaming)) {
    const found =
      'the server reports no standby: if it is lost, you need a restore, which begins a new epoch';
    return { level: 'ok', subject, found };
  }
  if (trustsFailover && isSynchronous) {
    const found = 'a promoted standby keeps the epoch, so nothing changes for clients';
    return { level: 'ok', subject, found };
  }
  const why = isSynchronous
    ? 'trustFailover is not set in service.json'
    : 'commits wait for no standby';
  const found = `a promoted standby begins a new epoch, and clients capture again: ${why}`;
  return { level: 'ok', subject, found };
}

function dayChecks({ lastDay }: ServerFacts): readonly Check[] {
  const subject = 'Days';
  const last = lastDay === undefined ? 0 : Date.parse(isoDay(lastDay));
  const ahead = Math.floor((last - Date.now()) / DAY_MS) + 1;
  if (ahead >= DAYS_AHEAD_MIN) {
    return [
      { level: 'ok', subject, found: `receipts have tables for ${count(ahead, 'day')} ahead` },
    ];
  }
  const found = 'receipts have no tables for the next days and go to the default table';
  const fix = 'A running service creates them once an hour. Start one.';
  return [{ level: 'warning', subject, found, fix }];
}

function isoDay(day: string): string {
  return `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}T00:00:00Z`;
}

function statementCheck({ slowStatements, slowestMs }: ServerFacts): Check {
  const subject = 'Statements';
  if (slowStatements === 0)
    return { level: 'ok', subject, found: 'none runs for more than a second' };
  const found = `${count(slowStatements, 'statement')} run for more than a second, one for ${slowestMs} ms`;
  const fix = 'Check pg_stat_activity, and whether autovacuum keeps up.';
  return { level: 'warning', subject, found, fix };
}

export async function checkLimiter(place: ServicePlace): Promise<Check> {
  const subject = 'Limiter';
  const { where, isThere } = await lookAtLimiter(place);
  if (isThere) return { level: 'ok', subject, found: `limits are counted in ${where}` };
  const found = `${where} does not answer, so the service refuses every call with a limit`;
  return { level: 'problem', subject, found, fix: 'Start it, or correct its address.' };
}
