import { type Dirent, existsSync, lstatSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Fields, isRecord, parseJson } from '../../core/bytes/json-fields.ts';
import type { TranscriptClient } from '../../core/memory/transcript-forms.ts';
import { TranscriptReader, type TranscriptRecord } from '../../core/memory/transcripts.ts';
import { linesOfFile } from '../files/lines.ts';
import { type Connection, loadDriver } from '../store/driver.ts';

/**
 * Finds and reads the transcripts that clients store in the user's home. It never writes them, follows no link in the
 * folders that it searches, and bounds what it reads.
 */

/** Bound on the transcripts of a client, of which the newest are taken: a year of ten sessions a day. */
const FILES_MAX = 4000;
/**
 * Bound on the bytes of a transcript: of a longer one only the beginning is read, or nothing if it is one JSON value.
 * The largest ones seen have 60 MB, mostly tool outputs.
 */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
/** Longest line that is read. A longer one is skipped: its message has a picture or a pasted file. */
const LINE_CHARS_MAX = 32 * 1024 * 1024;
/** Levels of subfolders that are searched for Codex: one more than sessions/<year>/<month>/<day>/rollout-* has. */
const DEPTH_MAX = 4;
/** Longest path that is read from a client's file: PATH_MAX of Linux. */
const PATH_BYTES_MAX = 4096;
/** Bound on the rows of an opencode session that are read, oldest first. A row is one part of a message. */
const ROWS_MAX = 100_000;

export interface TranscriptFile {
  readonly path: string;
  /** The session's id in a file with several sessions. */
  readonly session?: string;
  readonly bytes: number;
  readonly changedAt: number;
}

export interface HomeFolders {
  readonly home: string;
  /** Environment variables, some of which name a client's folder. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/**
 * Lists a client's transcripts, oldest first, so that an import stores their texts in the order of time. The list is
 * empty if the client was never used.
 */
export function findTranscripts(client: TranscriptClient, folders: HomeFolders): TranscriptFile[] {
  const found = FINDERS[client](folders);
  return found.toSorted((a, b) => a.changedAt - b.changedAt).slice(-FILES_MAX);
}

const FINDERS: Readonly<Record<TranscriptClient, (folders: HomeFolders) => TranscriptFile[]>> = {
  'claude-code': ({ home, environment }) =>
    // Depth 1 leaves out the transcripts of sub-agents, which are one level deeper.
    collect(join(environment['CLAUDE_CONFIG_DIR'] ?? join(home, '.claude'), 'projects'), 1),
  codex: ({ home, environment }) => {
    const root = environment['CODEX_HOME'] ?? join(home, '.codex');
    return ['sessions', 'archived_sessions'].flatMap((name) =>
      collect(join(root, name), DEPTH_MAX),
    );
  },
  copilot: ({ home, environment }) =>
    collect(join(environment['COPILOT_HOME'] ?? join(home, '.copilot'), 'session-state'), 1).filter(
      ({ path }) => basename(path) === 'events.jsonl',
    ),
  pi: ({ home, environment }) =>
    collect(join(environment['PI_CODING_AGENT_DIR'] ?? join(home, '.pi/agent'), 'sessions'), 1),
  qwen: ({ home }) =>
    collect(join(home, '.qwen/projects'), 2).filter(
      ({ path }) => basename(dirname(path)) === 'chats',
    ),
  gemini: ({ home, environment }) =>
    // Depth 2 leaves out the transcripts of sub-agents, which are one level deeper.
    collect(join(environment['GEMINI_CLI_HOME'] ?? home, '.gemini/tmp'), 2).filter(
      ({ path }) => basename(dirname(path)) === 'chats',
    ),
  continue: ({ home, environment }) =>
    collect(
      join(environment['CONTINUE_GLOBAL_DIR'] ?? join(home, '.continue'), 'sessions'),
      0,
      '.json',
    ).filter(({ path }) => basename(path) !== 'sessions.json'),
  cline: ({ home }) => collect(join(home, '.cline/data/sessions'), 1, '.messages.json'),
  opencode: ({ home, environment }) =>
    opencodeSessions(
      join(environment['XDG_DATA_HOME'] ?? join(home, '.local/share'), 'opencode/opencode.db'),
    ),
};

export interface Transcript {
  /** The folder in which the session worked; undefined if the transcript does not state it. */
  readonly folder: string | undefined;
  readonly records: readonly TranscriptRecord[];
}

/** Reads the records of a session. Throws errors of the file system. */
export async function readTranscript(
  client: TranscriptClient,
  file: TranscriptFile,
): Promise<Transcript> {
  const reader = new TranscriptReader(client);
  if (client === 'opencode') readOpencode(file, reader);
  else if (client === 'continue') await readContinue(file, reader);
  else if (client === 'cline') await readCline(file, reader);
  else if (client === 'gemini') await readGemini(file, reader);
  else {
    for await (const line of linesOfFile(file.path, FILE_BYTES_MAX)) {
      if (line.length <= LINE_CHARS_MAX) reader.push(line);
    }
  }
  const name = basename(file.path).replace(/(?:\.messages)?\.jsonl?$/, '');
  const records = reader.finish({ name });
  return { folder: reader.folder, records };
}

/** Reads a session of Continue: one object with a history. It has no times, so every entry gets the file's time. */
async function readContinue(file: TranscriptFile, reader: TranscriptReader): Promise<void> {
  const { history, ...session } = await wholeFile(file.path);
  reader.take(session);
  for (const entry of Array.isArray(history) ? history : []) {
    if (isRecord(entry)) reader.take({ ...entry, at: Math.floor(file.changedAt) });
  }
}

/** Reads a session of Cline: a file with its messages, and one beside it that names the folder. Skips sub-agents. */
async function readCline(file: TranscriptFile, reader: TranscriptReader): Promise<void> {
  const { agent, messages, sessionId } = await wholeFile(file.path);
  if (agent !== 'lead') return;
  const beside = await wholeFile(file.path.replace(/\.messages\.json$/, '.json'));
  reader.take({ sessionId, folder: beside['cwd'] });
  for (const message of Array.isArray(messages) ? messages : []) {
    if (isRecord(message)) reader.take(message);
  }
}

/**
 * Reads a session of Gemini CLI 0.61.0. The client writes a message a second time when its calls have ended, and a line
 * with `$rewindTo` when the user goes back to the point before a message. A line with `$set` is skipped: it only sets a
 * time, or repeats messages and adds messages that the client itself has written.
 */
async function readGemini(file: TranscriptFile, reader: TranscriptReader): Promise<void> {
  const messages = new Map<string, Fields>();
  for await (const line of linesOfFile(file.path, FILE_BYTES_MAX)) {
    const fields = line.length <= LINE_CHARS_MAX ? parseJson(line) : undefined;
    if (!isRecord(fields)) continue;
    const { id, kind, $rewindTo: first } = fields;
    if (kind === 'subagent') return;
    if (typeof first === 'string') rewind(messages, first);
    else if (typeof id === 'string') messages.set(id, fields);
    else reader.take(fields);
  }
  const root = join(dirname(dirname(file.path)), '.project_root');
  reader.take({ folder: (await smallFile(root)).trim() || undefined });
  for (const message of messages.values()) reader.take(message);
}

/** Removes the message `first` and all later ones. Removes all messages if it is not among them, as the client does. */
function rewind(messages: Map<string, Fields>, first: string): void {
  const ids = [...messages.keys()];
  for (const id of ids.slice(Math.max(ids.indexOf(first), 0))) messages.delete(id);
}

/** Reads a client's file that holds only a path. Returns '' if it is missing, no regular file, or too long. */
async function smallFile(path: string): Promise<string> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && stat.size <= PATH_BYTES_MAX ? readFile(path, 'utf8') : '';
}

async function wholeFile(path: string): Promise<Fields> {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat?.isFile() !== true || stat.size > FILE_BYTES_MAX) return {};
  const whole = parseJson(await readFile(path, 'utf8'));
  return isRecord(whole) ? whole : {};
}

interface OpencodeSession {
  readonly id: string;
  readonly directory: string;
  readonly revert: string | null;
  readonly changedAt: number;
}

/** Selects sessions without a parent; those with a parent are sub-agents' sessions. */
const SESSIONS = `SELECT id, directory, revert, time_updated AS changedAt FROM session WHERE parent_id IS NULL`;
const MESSAGES = `SELECT m.id, m.time_created AS at, m.data AS message, p.data AS part
  FROM message m LEFT JOIN part p ON p.message_id = m.id AND json_extract(p.data, '$.type') = 'text'
  WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.time_created, p.id LIMIT ${ROWS_MAX}`;

function opencodeSessions(path: string): TranscriptFile[] {
  return inDatabase(path, (database) => {
    const newest = `${SESSIONS} ORDER BY time_updated DESC LIMIT ${FILES_MAX}`;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of the statement.
    const sessions = database.prepare(newest).all() as OpencodeSession[];
    return sessions.map(({ id, changedAt }) => ({ path, session: id, bytes: 0, changedAt }));
  });
}

function readOpencode(file: TranscriptFile, reader: TranscriptReader): void {
  const { session: id = '' } = file;
  inDatabase(file.path, (database) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of the statement.
    const session = database.prepare(`${SESSIONS} AND id = ?`).get(id) as
      | OpencodeSession
      | undefined;
    if (session === undefined) return [];
    reader.take({ session: id, folder: session.directory });
    const reverted = parseJson(session.revert ?? 'null');
    // The user took back this message and all later ones. Ids ascend with time.
    const end = isRecord(reverted) ? reverted['messageID'] : undefined;
    for (const message of messagesOf(database, id)) {
      if (typeof end === 'string' && message.id >= end) break;
      reader.take({ message: message.said, parts: message.parts, at: message.at });
    }
    return [];
  });
}

interface OpencodeMessage {
  readonly id: string;
  readonly at: number;
  readonly said: unknown;
  readonly parts: unknown[];
}

function messagesOf(database: Connection, session: string): OpencodeMessage[] {
  const messages: OpencodeMessage[] = [];
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- The columns of the statement.
  const rows = database.prepare(MESSAGES).all(session) as readonly {
    readonly id: string;
    readonly at: number;
    readonly message: string;
    readonly part: string | null;
  }[];
  for (const { id, at, message, part } of rows) {
    if (messages.at(-1)?.id !== id) messages.push({ id, at, said: parseJson(message), parts: [] });
    if (part !== null) messages.at(-1)?.parts.push(parseJson(part));
  }
  return messages;
}

/** Reads from opencode's database without writing. Returns nothing if it cannot be read or has other tables. */
function inDatabase<T>(path: string, read: (database: Connection) => T[]): T[] {
  if (!existsSync(path)) return [];
  let database: Connection | undefined;
  try {
    database = loadDriver().open(path, { readOnly: true });
    return read(database);
  } catch {
    return [];
  } finally {
    database?.close();
  }
}

function collect(folder: string, depth: number, ending = '.jsonl'): TranscriptFile[] {
  return entriesOf(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && depth > 0) return collect(path, depth - 1, ending);
    if (!entry.isFile() || !entry.name.endsWith(ending)) return [];
    try {
      const { size, mtimeMs } = lstatSync(path);
      return [{ path, bytes: size, changedAt: mtimeMs }];
    } catch {
      // The client has removed the file since its folder was read, or the folder may be read but not entered.
      return [];
    }
  });
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // The folder is missing or cannot be read, so there is nothing to import.
    return [];
  }
}
