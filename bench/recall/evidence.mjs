/** How much of the evidence is found: within the block that goes into the prompt, and by rank. */
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { indexLines } from './bm25.mjs';
import { withStore } from '../lib/product.mjs';

/** What the proxy asks for by default: `recalledTokensMax`. */
const BLOCK_TOKENS_MAX = 512;
/** Enough for the first ten sessions to be among what is answered. */
const RANKED_TOKENS_MAX = 8192;
/** More of them than a block holds. */
const WRITTEN_MAX = 40;

const never = new AbortController().signal;

/** The product, and plain BM25 in the same block. */
export async function measureEvidence(modules, conversations) {
  const product = await withStore(modules, async ({ memory }) => {
    await capture(memory, conversations);
    return evidenceFrom(modules, conversations, { memory, countsTokens: true });
  });
  return { product, plain: await evidenceOfPlain(modules, conversations) };
}

export async function capture(memory, conversations) {
  for (const { records } of conversations) await memory.capture(records, never);
}

/** `memory` holds the conversations. Without `countsTokens` no block counts as over its limit. */
export function evidenceFrom(modules, conversations, { memory, countsTokens }) {
  const sum = new Score(countsTokens);
  return score(modules, { conversations, sum }, async (conversation, question) => {
    const ask = async (tokensMax) =>
      (await memory.recall(recallQuestion(conversation, question, tokensMax), never)).passages;
    return { best: await ask(BLOCK_TOKENS_MAX), ranked: await ask(RANKED_TOKENS_MAX) };
  });
}

function evidenceOfPlain(modules, conversations) {
  const passagesOf = (record) =>
    modules.passages
      .cutPassages(record.text)
      .map(({ start, end }) => ({ ...record, text: record.text.slice(start, end) }));
  const searches = new Map(
    conversations.map((conversation) => [
      conversation,
      indexLines(conversation.records.flatMap(passagesOf), modules.terms.termsOf),
    ]),
  );
  const sum = new Score(true);
  return score(modules, { conversations, sum }, (conversation, { text }) => {
    const ranked = searches.get(conversation)(text);
    return { best: ranked, ranked };
  });
}

/** `find` gives the passages for the block, and more of them for the ranks, best first. */
async function score({ block }, { conversations, sum }, find) {
  for (const conversation of conversations) {
    for (const question of conversation.questions) {
      // oxlint-disable-next-line no-await-in-loop -- One store answers one question after the other.
      const { best, ranked } = await find(conversation, question);
      sum.add(conversation, question, { block: blockOf(best, block), ranked });
    }
  }
  return sum.result();
}

export function recallQuestion({ space, records }, { text }, tokensMax) {
  return {
    space,
    humanText: text,
    assistantText: '',
    excludeDigests: [],
    tokensMax,
    now: records.at(-1).at,
  };
}

/** What the model would see, and which of these passages stand in it. */
function blockOf(passages, { lineOf, writeRecallBlock }) {
  const best = passages.slice(0, WRITTEN_MAX);
  const { text } = writeRecallBlock(best, BLOCK_TOKENS_MAX);
  return { kept: best.filter((passage) => text.includes(`\n${lineOf(passage)}\n`)), text };
}

class Score {
  #countsTokens;
  #questions = 0;
  #sums = {};
  #categories = new Map();
  #tokensMost = 0;
  /** Over all categories, as others publish it. */
  #published = { count: 0, dialog10: 0 };

  /** Counting takes a fifth of the time. */
  constructor(countsTokens) {
    this.#countsTokens = countsTokens;
  }

  add(conversation, { category, evidence, stale }, { block, ranked }) {
    const shown = new Set(block.kept.flatMap(({ digest }) => conversation.lines.get(digest) ?? []));
    const share = shareOf(evidence, shown);
    const row = this.#categories.get(category) ?? { count: 0, share: 0 };
    this.#categories.set(category, { count: row.count + 1, share: row.share + share });
    const tokens = this.#countsTokens ? countTokens(block.text) : 0;
    this.#tokensMost = Math.max(this.#tokensMost, tokens);
    const lines = linesOf(conversation, ranked);
    const dialog10 = shareOf(evidence, new Set(lines.slice(0, 10)));
    this.#published.count += 1;
    this.#published.dialog10 += dialog10;
    // Questions of category 5 ask for what was never said.
    if (category === 5) return;
    this.#questions += 1;
    const sessionOf = (line) => conversation.sessions.get(line);
    const sessions = [...new Set(lines.map(sessionOf))];
    const wanted = new Set([...evidence].map(sessionOf));
    const first = lines.findIndex((line) => evidence.has(line));
    const figures = {
      share,
      any: share > 0 ? 1 : 0,
      all: share === 1 ? 1 : 0,
      dialog10,
      over: tokens > BLOCK_TOKENS_MAX ? 1 : 0,
      ...changeOf(lines, { evidence, stale }),
      session5: shareOf(wanted, new Set(sessions.slice(0, 5))),
      session10: shareOf(wanted, new Set(sessions.slice(0, 10))),
      reciprocal: first === -1 ? 0 : 1 / (first + 1),
      empty: block.kept.length === 0 ? 1 : 0,
      tokens,
    };
    for (const [name, value] of Object.entries(figures)) {
      this.#sums[name] = (this.#sums[name] ?? 0) + value;
    }
  }

  /** Shares from 0 to 1 over categories 1 to 4; tokens are o200k_base's. */
  result() {
    const means = Object.entries(this.#sums).map(([name, sum]) => [name, sum / this.#questions]);
    const categories = [...this.#categories]
      .toSorted(([a], [b]) => a - b)
      .map(([category, { count, share }]) => [category, share / count]);
    return {
      questions: this.#questions,
      ...Object.fromEntries(means),
      tokensMost: this.#tokensMost,
      dialog10Published: this.#published.dialog10 / this.#published.count,
      categories: Object.fromEntries(categories),
    };
  }
}

/** `updates`: questions about what has changed; `newest`: those where the newest statement comes first. */
function changeOf(lines, { evidence, stale }) {
  if (stale === undefined || stale.size === 0) return { updates: 0, newest: 0 };
  const first = lines.find((line) => evidence.has(line) || stale.has(line));
  return { updates: 1, newest: first !== undefined && evidence.has(first) ? 1 : 0 };
}

/** Distinct, best first. */
function linesOf(conversation, ranked) {
  return [...new Set(ranked.flatMap(({ digest }) => conversation.lines.get(digest) ?? []))];
}

function shareOf(wanted, found) {
  let held = 0;
  for (const one of wanted) if (found.has(one)) held += 1;
  return held / wanted.size;
}
