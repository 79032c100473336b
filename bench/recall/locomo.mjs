/**
 * LoCoMo: ten long conversations between two people, with questions and the lines that answer them.
 * Each conversation is a space; a line is a record, dated by its session, said by the user (the
 * first speaker) or the assistant (the second). The name of the speaker stands before the words, as
 * the questions ask by name.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const FILE = join(import.meta.dirname, '..', '..', '..', 'shared', 'data', 'locomo.json.gz');

/**
 * Undefined when the file is not there. `half`: dev are the even conversations, test the odd ones.
 * `areRolesTold`: false makes every line the user's, which is how a role is left out of the ranking.
 */
export function readConversations({ half, areRolesTold, file = FILE }) {
  if (!existsSync(file)) return undefined;
  const all = JSON.parse(gunzipSync(readFileSync(file)).toString('utf8'));
  const isWanted = (index) => half === 'all' || (index % 2 === 0) === (half === 'dev');
  return all
    .filter((_, index) => isWanted(index))
    .map((conversation) => readConversation(conversation, areRolesTold));
}

export const DATA_FILE = FILE;

function readConversation(conversation, areRolesTold) {
  const lines = new Map();
  let exchange = -1;
  let last;
  const records = conversation.turns.map((line) => {
    const isUsers = line.speaker === conversation.a;
    if (last?.sess !== line.sess) exchange = -1;
    if (last?.sess !== line.sess || isUsers || last.speaker === line.speaker) exchange += 1;
    last = line;
    const role = isUsers || !areRolesTold ? 'user' : 'assistant';
    const text = `${line.speaker}: ${line.text}`;
    const digest = createHash('sha256').update(`${role}\n${text}`).digest('base64url');
    // The same words said twice are one memory: it stands for both lines.
    lines.set(digest, [...(lines.get(digest) ?? []), line.id]);
    return {
      digest,
      space: conversation.id,
      role,
      text,
      conversation: `${conversation.id}/${line.sess}`,
      client: 'unknown',
      at: Date.parse(`${line.date}:00Z`),
      fingerprint: line.id,
      exchange,
    };
  });
  const sessions = new Map(conversation.turns.map((line) => [line.id, line.sess]));
  const questions = conversation.qa.flatMap(({ q, cat, ev }) => {
    // Two ids of the set are broken and four questions name none.
    const evidence = new Set((ev ?? []).filter((id) => sessions.has(id)));
    return evidence.size === 0 ? [] : [{ text: q, category: cat, evidence }];
  });
  return { space: conversation.id, records, lines, sessions, questions };
}
