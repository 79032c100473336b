import { type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import {
  type TranscriptClient,
  TranscriptReader,
  type TranscriptRecord,
} from '../../core/memory/transcripts.ts';
import { linesOfFile } from '../files/lines.ts';

/**
 * The transcripts that clients keep in the person's home. They are read and never written; links
 * are not followed, and nothing here is larger than its limit.
 */

/** A year of heavy use: ten sessions a day. The newest are read. */
const FILES_MAX = 4000;
/** The largest sessions seen are 60 MB, most of it outputs of tools. */
const FILE_BYTES_MAX = 256 * 1024 * 1024;
/** A line holds one message; one of 32 MiB is a picture or a pasted file. */
const LINE_CHARS_MAX = 32 * 1024 * 1024;
/** Claude Code: projects/<project>/<session>.jsonl. Codex: sessions/<year>/<month>/<day>/rollout-*. */
const DEPTH_MAX = 4;

export interface TranscriptFile {
  readonly path: string;
  readonly bytes: number;
  readonly changedAt: number;
}

export interface HomeFolders {
  readonly home: string;
  /** CLAUDE_CONFIG_DIR and CODEX_HOME, where they are set. */
  readonly claudeFolder?: string | undefined;
  readonly codexFolder?: string | undefined;
}

/** Oldest first, so that memories come in as they were said. Empty when the client was never used. */
export function findTranscripts(client: TranscriptClient, folders: HomeFolders): TranscriptFile[] {
  const files: TranscriptFile[] = [];
  if (client === 'claude-code') {
    const root = join(folders.claudeFolder ?? join(folders.home, '.claude'), 'projects');
    // Deeper folders hold the transcripts of sub-agents.
    for (const project of entriesOf(root)) {
      if (project.isDirectory()) collect(join(root, project.name), 0, files);
    }
  } else {
    const root = folders.codexFolder ?? join(folders.home, '.codex');
    collect(join(root, 'sessions'), DEPTH_MAX, files);
    collect(join(root, 'archived_sessions'), DEPTH_MAX, files);
  }
  return files.toSorted((a, b) => a.changedAt - b.changedAt).slice(-FILES_MAX);
}

export interface Transcript {
  /** Where the session was at work; undefined where it does not say so. */
  readonly folder: string | undefined;
  readonly records: readonly TranscriptRecord[];
}

/** The memories of one session. Throws what the file system throws. */
export async function readTranscript(
  client: TranscriptClient,
  file: TranscriptFile,
): Promise<Transcript> {
  const reader = new TranscriptReader(client);
  for await (const line of linesOfFile(file.path, FILE_BYTES_MAX)) {
    if (line.length <= LINE_CHARS_MAX) reader.push(line);
  }
  const records = reader.finish(basename(file.path, '.jsonl'));
  return { folder: reader.folder, records };
}

function collect(folder: string, depth: number, files: TranscriptFile[]): void {
  for (const entry of entriesOf(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && depth > 0) collect(path, depth - 1, files);
    if (!entry.isFile() || !entry.name.endsWith('.jsonl')) continue;
    const { size, mtimeMs } = lstatSync(path);
    files.push({ path, bytes: size, changedAt: mtimeMs });
  }
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    // No such folder, or one that is not ours to read: there is nothing to import from it.
    return [];
  }
}
