/**
 * LoCoMo: ten long conversations between two people, with questions and the lines that answer them.
 * Each conversation is a space; a line is a record, dated by its session, said by the user (the
 * first speaker) or the assistant (the second). The name of the speaker stands before the words, as
 * the questions ask by name.
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { InputError, readJson } from '../lib/input.mjs';

export const DATA_FILE = join(
  import.meta.dirname,
  '..',
  '..',
  '..',
  'shared',
  'data',
  'locomo.json.gz',
);

/**
 * Undefined when the file is not there. `half`: dev are the even conversations, test the odd ones.
 * `areRolesTold`: false makes every line the user's, which is how a role is left out of the ranking.
 */
export function readConversations({ half, areRolesTold, file = DATA_FILE }) {
  if (!existsSync(file)) return undefined;
  const found = readJson(file);
  const all = Array.isArray(found)
    ? found.map((one) => (isPublished(one) ? converted(one) : one))
    : [];
  if (all.length === 0 || !all.every(isConversation)) {
    throw new InputError(
      `${file} is no list of conversations in LoCoMo's form; see bench/README.md.`,
    );
  }
  const wanted = all.filter((_, at) => half === 'all' || (at % 2 === 0) === (half === 'dev'));
  const read = wanted.map((conversation) => readConversation(conversation, areRolesTold));
  if (!read.some(({ questions }) => questions.length > 0)) {
    throw new InputError(
      `${file} has no question with evidence in its ${half} half; try --half all.`,
    );
  }
  return read;
}

function isConversation(one) {
  return Array.isArray(one?.turns) && Array.isArray(one.qa);
}

/** The authors' own file: sessions by their number, and questions with whole names. */
function isPublished(one) {
  return typeof one?.conversation === 'object' && Array.isArray(one.qa);
}

function converted({ sample_id: id, conversation, qa }) {
  const numbers = Object.keys(conversation).flatMap(
    (key) => /^session_(\d+)$/.exec(key)?.[1] ?? [],
  );
  return {
    id,
    a: conversation.speaker_a,
    turns: numbers.flatMap((number) =>
      conversation[`session_${number}`].map(({ speaker, dia_id: line, text }) => {
        const date = isoMinute(conversation[`session_${number}_date_time`]);
        return { id: line, sess: Number(number), date, speaker, text };
      }),
    ),
    qa: qa.map(({ question, category, evidence }) => ({
      q: question,
      cat: category,
      ev: evidence,
    })),
  };
}

/** "1:56 pm on 8 May, 2023" */
function isoMinute(said) {
  const [time, day] = said.split(' on ');
  return new Date(`${day} ${time} UTC`).toISOString().slice(0, 16);
}

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
