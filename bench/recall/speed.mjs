/**
 * What a recall costs in stores of several sizes, and how soon a capture can be recalled. The texts
 * are made from a seed: words by Zipf's law for ordinary stores, few words over and over for hostile
 * ones. CPU is of the whole process, all threads; wall time is also the machine's other work.
 */
import { createHash } from 'node:crypto';
import { percentile } from '../lib/statistics.mjs';
import { withStore } from '../lib/product.mjs';

const never = new AbortController().signal;
const SPACE = 'project/bench';

/** An agent's first prompt: its session's list of earlier ones costs most. None is refused as saying too little. */
const FIRST_PROMPT = { conversation: 'of none', branch: '', quietShare: 0, briefTokensMax: 125 };

/** `words`: how many different ones; `power`: how unevenly they are used; `agent`: who asks, a chat unless told. */
export const KINDS = {
  agent: { words: 30_000, power: 1, asked: 60, answered: 0, agent: FIRST_PROMPT },
  ordinary: { words: 30_000, power: 1, asked: 12, answered: 0 },
  'long prompt': { words: 30_000, power: 1, asked: 60, answered: 80 },
  'few words': { words: 150, power: 0, asked: 60, answered: 80 },
};

export async function measureSpeed(modules, { sizes, questions }) {
  const rows = [];
  for (const [name, kind] of Object.entries(KINDS)) {
    for (const size of sizes) {
      process.stderr.write(`# ${size} records, ${name}\n`);
      rows.push({ name, size, ...(await measureOne(modules, kind, { size, questions })) });
    }
  }
  return rows;
}

function measureOne(modules, kind, { size, questions }) {
  return withStore(modules, async (store) => {
    const texts = new Texts(kind, size);
    const fillMs = await fill(store, texts, size);
    const figures = await ask(store, texts, { kind, questions });
    return { ...figures, fillMicroseconds: (1000 * fillMs) / size, ...(await keep(store, texts)) };
  });
}

async function fill({ memory }, texts, size) {
  const start = performance.now();
  for (let at = 0; at < size; at += 1000) {
    const count = Math.min(1000, size - at);
    await memory.capture(
      Array.from({ length: count }, (_, place) => texts.record(at + place)),
      never,
    );
  }
  return performance.now() - start;
}

async function ask({ memory }, texts, { kind, questions }) {
  const cpu = [];
  const wall = [];
  let found = 0;
  // The first tenth warms what a running proxy has warm.
  const warm = Math.ceil(questions / 10);
  for (let at = -warm; at < questions; at += 1) {
    const question = texts.question(kind);
    const before = process.cpuUsage();
    const start = performance.now();
    const { passages, exchanges = [], sessions = [] } = await memory.recall(question, never);
    if (at < 0) continue;
    wall.push(performance.now() - start);
    const { user, system } = process.cpuUsage(before);
    cpu.push((user + system) / 1000);
    found += passages.length + exchanges.length + sessions.length > 0 ? 1 : 0;
  }
  return {
    cpu50: percentile(cpu, 0.5),
    cpu99: percentile(cpu, 0.99),
    wall50: percentile(wall, 0.5),
    wall99: percentile(wall, 0.99),
    found: found / questions,
  };
}

const KEPT = 20;
/** Longer than any capture waits; what is not there by then is lost. */
const KEPT_MS_MAX = 5000;

/** From `keep` until a recall finds it, asked again and again as a client would. */
async function keep({ memory, outbox }, texts) {
  const times = [];
  for (let at = 0; at < KEPT; at += 1) {
    const word = `zyx${at}wvu`;
    const record = texts.recordOf(`The code word of this round is ${word} and nothing else.`);
    const start = performance.now();
    outbox.keep([record]);
    const question = {
      ...texts.question({ asked: 0, answered: 0 }),
      humanText: `code word ${word}`,
    };
    let isFound = false;
    while (!isFound && performance.now() - start < KEPT_MS_MAX) {
      const { passages } = await memory.recall(question, never);
      isFound = passages.some(({ digest }) => digest === record.digest);
      if (!isFound) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    times.push(isFound ? performance.now() - start : Infinity);
  }
  return { kept50: percentile(times, 0.5), keptMost: Math.max(...times) };
}

export class Texts {
  #seed = 0x2545f491;
  #kind;
  #made = 0;
  #records = [];

  constructor(kind) {
    this.#kind = kind;
  }

  record() {
    // Lines of 8 to 60 words: what people type and assistants answer in one passage or two.
    const record = this.recordOf(this.#words(8 + Math.floor(this.#random() * 52)));
    // A sample of them to ask about.
    if (this.#records.length < 500 || this.#random() < 0.02) this.#records.push(record.text);
    return record;
  }

  recordOf(text) {
    const made = this.#made;
    this.#made += 1;
    const role = made % 2 === 0 ? 'user' : 'assistant';
    return {
      digest: createHash('sha256').update(`${role}\n${text}`).digest('base64url'),
      space: SPACE,
      role,
      text,
      conversation: `conversation-${Math.floor(made / 40)}`,
      client: 'bench',
      at: Date.UTC(2026, 0, 1) + made * 60_000,
      fingerprint: `fingerprint-${made}`,
      exchange: Math.floor((made % 40) / 2),
    };
  }

  /** Half of the words from one record, the other half from anywhere. */
  question({ asked, answered, agent }) {
    const about = this.#records[Math.floor(this.#random() * this.#records.length)] ?? '';
    const own = about.split(' ').slice(0, Math.ceil(asked / 2));
    return {
      space: SPACE,
      humanText: `${own.join(' ')} ${this.#words(asked - own.length)}`,
      assistantText: this.#words(answered),
      excludeDigests: [],
      tokensMax: 512,
      now: Date.UTC(2026, 11, 1),
      ...(agent === undefined ? {} : { agent }),
    };
  }

  #words(count) {
    return Array.from({ length: Math.max(0, count) }, () => this.#word()).join(' ');
  }

  #word() {
    const { words, power } = this.#kind;
    // The inverse of Zipf's distribution, near enough: rank = words^u.
    const rank = power === 0 ? this.#random() * words : words ** this.#random();
    return nameOf(Math.floor(rank));
  }

  // xorshift32: the same texts on every machine.
  #random() {
    let seed = this.#seed;
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    this.#seed = seed >>> 0;
    return this.#seed / 2 ** 32;
  }
}

const SYLLABLES = ['ba', 'ko', 'mi', 'tu', 'ra', 'len', 'dor', 'vis', 'pam', 'gol', 'nu', 'zet'];

/** A word that no stemmer shortens: syllables as digits of the rank. */
function nameOf(rank) {
  let rest = rank;
  let name = '';
  do {
    name += SYLLABLES[rest % SYLLABLES.length];
    rest = Math.floor(rest / SYLLABLES.length);
  } while (rest > 0);
  return `${name}k`;
}
