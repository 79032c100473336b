/**
 * Real sessions with the outputs of their tools, for second looks: the coding data have no outputs, and an
 * error is known by its line. Each folder is a project; nobody labelled them, so they are only read.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { readJson } from '../lib/input.mjs';
import { replay } from './coding-replay.mjs';

const SHARED = join(import.meta.dirname, '..', '..', '..', 'shared');
const SESSIONS = join(SHARED, 'data', 'sessions-dev');

/** The second looks of the sessions, in time order; undefined when the sessions are not there. */
export async function lookAgain(modules, { settings, folder = SESSIONS }) {
  if (!existsSync(folder)) return undefined;
  const rows = [];
  for (const project of readdirSync(folder).filter((name) => !name.startsWith('needs-'))) {
    const exchanges = exchangesIn(join(folder, project), project);
    if (exchanges.length === 0) continue;
    await replay(modules, exchanges, {
      settings,
      isBaselineAsked: () => false,
      look: () => {},
      lookAgain: ({ prompt: { id, human }, done, block }) =>
        rows.push({ id, prompt: human, block, done }),
    });
  }
  return rows;
}

function exchangesIn(folder, project) {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.json.gz'))
    .flatMap((name) => exchangesOf(readJson(join(folder, name)), { project, session: name }));
}

/** A text of the person begins an exchange. A client puts the same one in front again after a compaction. */
function exchangesOf({ items, calls }, { project, session }) {
  const exchanges = [];
  const heard = new Set();
  const called = new Map();
  let at = calls[0]?.ts ?? 0;
  for (const { role, kind, text, tool, tid, call } of items) {
    at = Math.max(at, calls[call]?.ts ?? 0);
    if (role === 'user' && kind === 'text') {
      if (BY_CLIENT.test(text) || heard.has(text)) continue;
      heard.add(text);
      const index = exchanges.length;
      const id = `${project}/${session.slice(0, 8)}-${index}`;
      exchanges.push({ id, repo: project, session, index, at: at + 1, human: text, items: [] });
    }
    const last = exchanges.at(-1);
    if (last === undefined) continue;
    if (role === 'assistant' && kind === 'text') last.items.push({ t: text });
    if (kind === 'tool_use') {
      const item = { c: tool, input: inputOf(tool, text), o: '' };
      called.set(tid, item);
      last.items.push(item);
    }
    if (kind === 'tool_result' && called.has(tid)) called.get(tid).o = text;
    last.end = Math.max(at, last.at);
  }
  return exchanges;
}

const BY_CLIENT =
  /^(?:<|# AGENTS\.md instructions|Base directory for this skill|\[Request interrupted|Caveat: |This session is being continued)/;

/** The data have the values of a call's arguments, each on its line, the telling one first. */
function inputOf(tool, text) {
  const lines = text.split('\n');
  const [first = ''] = lines;
  if (/bash|exec|shell/i.test(tool)) return { command: first };
  if (/grep|glob|search/i.test(tool)) return { pattern: first };
  if (/read|edit|write$/i.test(tool)) {
    return { file_path: lines.find((line) => line.startsWith('/')) ?? first };
  }
  return { input: text };
}
