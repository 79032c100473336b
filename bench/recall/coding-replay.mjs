/**
 * Replays the sessions of one project in time order through the product: its capture rules, store,
 * ranking and blocks, asked as the proxy asks. Every prompt is asked, labelled or not, because recall
 * compares a prompt with those before it, and because the blocks of a session share one room: the ledger
 * keeps them, and later requests carry them again.
 */
import { createHash } from 'node:crypto';
import { withStore } from '../lib/product.mjs';
import { indexLines } from './bm25.mjs';
import { linesOf, requestOf } from './coding-transcript.mjs';

const BLOCK_TOKENS_MAX = 512;
const BASELINE_CANDIDATES = 40;
/** Of the proxy: a question is a few sentences. */
const QUESTION_CHARS_MAX = 4096;

const never = new AbortController().signal;

/**
 * Calls `look` at each prompt that has something earlier in another session, in time order, and `lookAgain` where
 * its tool loop is long enough for a second look.
 */
export async function replay(modules, exchanges, { settings, isBaselineAsked, look, lookAgain }) {
  await withStore(modules, async ({ memory, desk }) => {
    const space = exchanges[0].repo;
    const capture = capturing(modules, memory, space);
    const waiting = exchanges.toSorted((a, b) => a.end - b.end);
    const passages = [];
    const ledger = new BlockLedger(modules);
    const { cutPassages } = modules.passages;
    for (const prompt of exchanges.toSorted((a, b) => a.at - b.at)) {
      while (waiting.length > 0 && waiting[0].end <= prompt.at) {
        const exchange = waiting.shift();
        const records = await capture(exchange);
        passages.push(...records.flatMap((record) => passagesOf(record, exchange, cutPassages)));
      }
      const prior = exchanges.filter(
        ({ session, end }) => session !== prompt.session && end <= prompt.at,
      );
      if (prior.length === 0) continue;
      const own = exchanges.filter(
        ({ session, at }) => session === prompt.session && at < prompt.at,
      );
      const asked = { space, settings, own, prompt, ledger };
      const { block, earlier } = await ask(modules, memory, asked);
      const plainBlock = () => baseline(modules, passages, prompt);
      await look({
        prompt,
        prior,
        isFirst: own.length === 0,
        block,
        earlier,
        plain: isBaselineAsked(prompt) ? plainBlock() : '',
        rank: () => rankedFor(desk, prompt, space),
      });
      const done = lookAgain === undefined ? undefined : loopOf(modules, prompt.items);
      if (done === undefined) continue;
      lookAgain({ prompt, done, ...(await ask(modules, memory, { ...asked, done })) });
    }
  });
}

/** What was done up to the end of the round with which a second look is due. */
function loopOf({ looks }, items) {
  const due = items.findIndex(
    (_, at) => items.slice(0, at + 1).filter(isCall).length >= looks.CALLS_MIN,
  );
  if (due === -1) return undefined;
  const next = items.findIndex((item, at) => at > due && !isCall(item));
  return items.slice(0, next === -1 ? items.length : next);
}

function isCall({ c: tool }) {
  return tool !== undefined;
}

/** The best exchanges, best first, whether recall speaks of them or not. */
async function rankedFor(desk, { human, session, at }, space) {
  const { agent } = await desk.look({
    space,
    humanText: human.slice(0, QUESTION_CHARS_MAX),
    assistantText: '',
    excludeDigests: [],
    tokensMax: BLOCK_TOKENS_MAX,
    now: at,
    agent: { conversation: session, branch: '', quietShare: 0, briefTokensMax: 0 },
  });
  return agent?.candidates ?? [];
}

function passagesOf(record, { session }, cutPassages) {
  return cutPassages(record.text).map(({ start, end }) => {
    const text = record.text.slice(start, end);
    return { ...record, text, client: 'claude-code', session };
  });
}

/** What the product remembers of a finished exchange. */
function capturing({ transcripts }, memory, space) {
  const fingerprints = new Map();
  return async (exchange) => {
    const reader = new transcripts.TranscriptReader('claude-code');
    for (const line of linesOf(exchange)) reader.push(line);
    const before = fingerprints.get(exchange.session) ?? '';
    const hash = createHash('sha256').update(`${before}\n${exchange.human}`);
    const fingerprint = hash.digest('base64url');
    fingerprints.set(exchange.session, fingerprint);
    const { session: conversation, index } = exchange;
    const records = reader
      .finish(exchange.session)
      .map((record) => ({ ...record, space, conversation, exchange: index, fingerprint }));
    if (records.length > 0) await memory.capture(records, never);
    return records;
  };
}

/** The ledger of one run: it is gone with the process, and nothing in it is forgotten. */
class BlockLedger {
  isShared = false;
  #entries = new Map();
  #modules;

  constructor({ found, entries }) {
    this.#modules = { found, entries };
  }

  async find(addresses) {
    const { found, entries } = this.#modules;
    return new found.FoundEntries(
      addresses.flatMap((one) => this.#entries.get(entries.keyOf(one)) ?? []),
    );
  }

  generation() {
    return 0;
  }

  async record(list) {
    const { keyOf, isWrittenOnce } = this.#modules.entries;
    for (const entry of list) {
      const key = keyOf(entry);
      const stays = isWrittenOnce(entry) && entry.replaces !== true;
      if (!stays || !this.#entries.has(key)) this.#entries.set(key, entry);
    }
  }

  async commit(list) {
    await this.record(list);
    return true;
  }
}

/** The new block that a request with this prompt carries, '' for none, and those of its earlier prompts. */
async function ask(modules, memory, { space, settings, own, prompt, ledger, done }) {
  const clock = { now: () => prompt.at, monotonic: () => performance.now() };
  const slices = new modules.slices.Slices(clock);
  const dependencies = { memory, ledger, clock, blockKey: 'bench', texts: modules.texts.TEXTS };
  const recaller = new modules.recall.Recaller(dependencies, slices);
  const reading = modules.reading.readRequest(new modules.conversations.Conversations(), {
    id: 'req_bench',
    route: { kind: 'model', dialect: 'anthropic_messages' },
    method: 'POST',
    target: '/v1/messages',
    headers: ['user-agent', 'claude-cli/2.1.0', 'x-svc-memory-space', space],
    body: Buffer.from(JSON.stringify(requestOf(own, prompt, done))),
    startedAt: 0,
  });
  const modes = { memory: 'read-write', reads: true, writes: true, compression: 'deterministic' };
  const deadline = { msLeft: 60_000 };
  const bond = { isBound: false };
  const call = { reading, modes, settings, bond, isCacheCold: false, deadline };
  const replayed = await recaller.replay(call, async () => ({ gone: [], going: [] }));
  const { placements, state } = await recaller.recall(call, replayed);
  if (state !== 'recalled' && state !== 'empty') {
    throw new Error(`${prompt.id}: the recall ended as ${state}`);
  }
  const blocks = (isNew) =>
    placements.filter((one) => (one.isNew === true) === isNew).map(({ block }) => block);
  return { block: blocks(true)[0] ?? '', earlier: blocks(false) };
}

/** Plain BM25 over passages of other sessions, by the prompt alone, without a threshold. */
function baseline({ block, terms }, passages, prompt) {
  const others = passages.filter(({ session }) => session !== prompt.session);
  const kept = [];
  let text = '';
  const ranked = indexLines(others, terms.termsOf)(prompt.human.slice(0, QUESTION_CHARS_MAX));
  for (const passage of ranked.slice(0, BASELINE_CANDIDATES)) {
    const next = block.writeRecallBlock([...kept, passage], BLOCK_TOKENS_MAX).text;
    if (next === text) continue;
    kept.push(passage);
    text = next;
  }
  return text;
}
