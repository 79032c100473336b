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

/** As `silenceOf`, with a store of their own. */
export function measureSilence(modules, conversations) {
  return withStore(modules, async ({ memory }) => {
    await capture(memory, conversations);
    return silenceOf(modules, conversations, memory);
  });
}

/**
 * Shares, from 0 to 1, of questions that get an answer: of others, of coding prompts, of its own;
 * `standing`: standing instructions that come with a prompt. `memory` holds the conversations.
 */
export async function silenceOf(modules, conversations, memory) {
  const counts = { foreign: [0, 0, 0], prompts: [0, 0, 0], own: [0, 0, 0] };
  for (const conversation of conversations) {
    const ask = async (kind, text) => {
      const asked = recallQuestion(conversation, { text }, 512);
      const { passages } = await memory.recall(asked, never);
      // What the person wants always holds for every order; its sentence is a passage's part.
      const isStanding = ({ text: one }) => modules.standing.standingIn(one)[0] === one;
      const found = kind === 'own' ? passages : passages.filter((one) => !isStanding(one));
      counts[kind][0] += found.length > 0 ? 1 : 0;
      counts[kind][2] += passages.length - found.length;
      counts[kind][1] += 1;
    };
    for (const text of foreignQuestions(conversations, conversation)) await ask('foreign', text);
    for (const text of PROMPTS) await ask('prompts', text);
    for (const text of ownQuestions(conversation)) await ask('own', text);
  }
  const shares = Object.entries(counts).map(([kind, [answered, asked]]) => [
    kind,
    answered / asked,
  ]);
  const [, asked, standing] = counts.prompts;
  return { ...Object.fromEntries(shares), standing: standing / asked };
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
