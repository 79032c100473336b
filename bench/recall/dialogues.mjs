/**
 * Conversations as agents have them: what the person says is short and holds the facts, the answers
 * are long and go on about the same words. Written for this bench: facts that change, preferences and
 * standing instructions among them. LoCoMo is people chatting, and what is fitted to it alone does
 * not hold here.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, 'dialogues.json');

/** As `readConversations` gives them, with `kind` for the category and the lines that are out of date. */
export function readDialogues() {
  return JSON.parse(readFileSync(FILE, 'utf8')).map(readDialogue);
}

function readDialogue({ id, said, asked }) {
  const lines = new Map();
  const records = said.flatMap(({ day, text, words }, exchange) => {
    const at = Date.parse(`${day}T09:00:00Z`) + exchange * 60_000;
    const place = { space: id, conversation: `${id}/${day}`, client: 'unknown', exchange, at };
    const answer = longAnswer(words.split(' '), exchange);
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

/** About 800 tokens that repeat the words of the question and say nothing of the person's own facts. */
function longAnswer(words, seed) {
  const word = (place) => words[(place + seed) % words.length] ?? '';
  const paragraphs = PARAGRAPHS.map((paragraph, place) =>
    paragraph
      .replaceAll('{a}', word(place))
      .replaceAll('{b}', word(place + 1))
      .replaceAll('{c}', word(place + 2)),
  );
  return paragraphs.join('\n\n');
}

const PARAGRAPHS = [
  'Good question. Getting {a} right early saves a lot of trouble with {b} later on, so here is how I would go about it, step by step, with the trade-offs that matter for {c}.',
  '## 1. Start from {a}\n\nKeep the first version small. Decide what {a} has to guarantee, write that down, and only then look at {b}. Many projects begin with {c} and find out weeks later that the shape of the data does not fit what they want to show.',
  '```\n# sketch\nfor each {a} in input:\n    check({a})\n    if {b} is missing: report and go on\n    store({a}, {b})\n```',
  '## 2. Common mistakes with {b}\n\n- Treating {a} and {b} as one thing: they change for different reasons and at different times.\n- Doing the work for {c} in the request instead of ahead of it.\n- No limit on how large {b} may grow. It works on a developer machine and fails in the first busy week.\n- Tests that depend on the order in which {a} happens to run.',
  '## 3. How to check it\n\nMeasure before and after. For {a} a simple count is enough in most cases; for {b} you will want percentiles, because an average hides the few slow ones that people complain about. Write the numbers beside the change, so that the next reader knows why {c} looks the way it does.',
  'If {b} turns out to be the bottleneck, there are three options: cache the result, move it to a background step, or reduce how often {a} is needed at all. The last one is the cheapest and is overlooked most often. Caching brings its own questions about when {c} is out of date.',
  '## 4. A checklist\n\n1. Name what {a} depends on.\n2. Make {b} explicit in the configuration instead of a constant.\n3. Add one test for the ordinary case of {c} and one for the empty case.\n4. Log the start and the end with an identifier, so that a failed {a} can be found again.\n5. Remove what nobody uses; old {b} is a source of confusion.',
  'In larger set-ups people put {a} behind a small interface so that {b} can be replaced. I would not do that yet. With one implementation the interface is a guess, and the guess is usually wrong. When the second implementation of {c} comes, the right cut is obvious.',
  '## 5. What I would do next\n\nBegin with the first two points, run it for a few days, and look at the numbers for {a} again. If they are stable, continue with {b}. If they are not, the cause is nearly always in {c}, and the checklist above shows where to look.',
  'Summary: keep {a} simple, make {b} visible, measure {c}, and change one thing at a time. Would you like me to write out the code for one of these steps, or to look at how {a} and {c} interact in your current version?',
];
