/**
 * Conversations as agents have them: what the person says is short and holds the facts, the answers
 * are long and go on about the same words. Written for this bench: facts that change, preferences and
 * standing instructions among them. LoCoMo is people chatting, and what is fitted to it alone does
 * not hold here.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'dialogues');
/** By language: paragraphs that stand around the words of a question. */
const ANSWERS = JSON.parse(readFileSync(join(import.meta.dirname, 'answers.json'), 'utf8'));

/** As `readConversations` gives them, with `kind` for the category and the lines that are out of date. */
export function readDialogues() {
  return readdirSync(FOLDER)
    .toSorted()
    .map((name) => readDialogue(JSON.parse(readFileSync(join(FOLDER, name), 'utf8'))));
}

function readDialogue({ id, language, said, asked }) {
  const lines = new Map();
  const records = said.flatMap(({ day, text, words }, exchange) => {
    const at = Date.parse(`${day}T09:00:00Z`) + exchange * 60_000;
    const place = { space: id, conversation: `${id}/${day}`, client: 'unknown', exchange, at };
    const answer = longAnswer(ANSWERS[language], words.split(' '), exchange);
    return [
      { ...place, role: 'user', text, fingerprint: `${exchange}` },
      { ...place, role: 'assistant', text: answer, fingerprint: `${exchange}a` },
    ].map((record) => {
      const digest = createHash('sha256').update(`${record.role}\n${record.text}`);
      return { ...record, digest: digest.digest('base64url') };
    });
  });
  for (const { digest, fingerprint } of records) lines.set(digest, [fingerprint]);
  const sessions = new Map(
    records.map(({ fingerprint, conversation }) => [fingerprint, conversation]),
  );
  const questions = asked.map(({ text, kind, evidence, stale }) => ({
    text,
    category: kind,
    evidence: new Set(evidence.map(String)),
    stale: new Set((stale ?? []).map(String)),
  }));
  return { space: id, records, lines, sessions, questions };
}

/** 400 to 800 tokens that repeat the words of the question and say nothing of the person's own facts. */
function longAnswer(paragraphs, words, seed) {
  const word = (place) => words[(place + seed) % words.length] ?? '';
  return paragraphs
    .map((paragraph, place) =>
      paragraph
        .replaceAll('{a}', word(place))
        .replaceAll('{b}', word(place + 1))
        .replaceAll('{c}', word(place + 2)),
    )
    .join('\n\n');
}
