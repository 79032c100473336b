/**
 * Does recall keep quiet when it knows nothing? Each store is asked what belongs to others: questions
 * of the other conversations, and prompts to coding agents about projects that no store knows.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { withStore } from '../lib/product.mjs';
import { capture, recallQuestion } from './evidence.mjs';

const PROMPTS = JSON.parse(readFileSync(join(import.meta.dirname, 'strangers.json'), 'utf8'));
/** Questions that each store is asked from each other one; enough for a share within 2 %. */
const FOREIGN_MAX = 30;

const never = new AbortController().signal;

/** As `silenceOf`, in a store of their own, and `own`: the share of their own questions that get an answer. */
export function measureSilence(modules, conversations) {
  return withStore(modules, async ({ memory }) => {
    await capture(memory, conversations);
    const own = shareAnswered(await ask(memory, conversations, ownQuestions));
    return { ...(await silenceOf(modules, conversations, memory)), own };
  });
}

/**
 * Shares, from 0 to 1, of questions that get an answer: of others and of coding prompts. `standing`:
 * standing instructions that come with a prompt. `memory` holds the conversations.
 */
export async function silenceOf({ standing }, conversations, memory) {
  // What the person wants always holds for every order; its sentence is a passage's part.
  const isStanding = ({ text }) => standing.rulesIn(text)[0] === text;
  const withoutStanding = (answers) =>
    answers.map((passages) => passages.filter((passage) => !isStanding(passage)));
  const foreign = await ask(memory, conversations, (one) => foreignQuestions(conversations, one));
  const prompts = await ask(memory, conversations, () => PROMPTS);
  return {
    foreign: shareAnswered(withoutStanding(foreign)),
    prompts: shareAnswered(withoutStanding(prompts)),
    standing: prompts.flat().filter(isStanding).length / prompts.length,
  };
}

async function ask(memory, conversations, textsFor) {
  const answers = [];
  for (const conversation of conversations) {
    for (const text of textsFor(conversation)) {
      const asked = recallQuestion(conversation, { text }, 512);
      answers.push((await memory.recall(asked, never)).passages);
    }
  }
  return answers;
}

function shareAnswered(answers) {
  return answers.filter((passages) => passages.length > 0).length / answers.length;
}

function foreignQuestions(conversations, conversation) {
  return conversations
    .filter((other) => other !== conversation)
    .flatMap((other) => spread(ownQuestions(other), FOREIGN_MAX));
}

/** Category 5 of LoCoMo asks for what was never said, an instruction is not about anything. */
function ownQuestions({ questions }) {
  return questions
    .filter(({ category }) => category !== 5 && category !== 'instruction')
    .map(({ text }) => text);
}

function spread(list, count) {
  const step = Math.max(1, list.length / count);
  return Array.from({ length: Math.min(count, list.length) }, (_, i) => list[Math.floor(i * step)]);
}
