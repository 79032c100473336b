import { within } from '../../../../src/adapters/within.ts';
import { Recent } from '../../../../src/core/bytes/recent.ts';
import { SIGNALS_MAX } from '../../../../src/core/recall/running-share.ts';
import type { SharedSignals } from '../../../../src/adapters/store/exchange-search.ts';
import { Search } from '../../../../src/adapters/store/search.ts';
import { runWaiting, waitFor } from '../../../../src/adapters/store/steps.ts';
import type { Rows } from '../../ports/rows.ts';
import { recalledItems } from '../memory/row-shapes.ts';
import { searchItems } from '../memory/statements.ts';
import {
  answerTo,
  type AskedText,
  type FoundItems,
  type MemoryEngine,
} from '../memory/tenant-memory.ts';
import { capture, makeSpace } from './captures.ts';
import type { Connections } from './connections.ts';
import { keepCounts, PostgresSource, type WordCount } from './postgres-source.ts';
import { INDEX } from './statements/index.ts';
import type { TermKeys } from './term-keys.ts';
import { columnsOf } from './wire-values.ts';

/** Implements the memory of tenants on PostgreSQL: captures, recalls, and the index, which contains hashes of words. */

/** The database, once it was found and its tables were checked. */
export interface OpenDatabase {
  readonly connections: Connections;
  /** Hashes words with this database's secret. */
  readonly keys: TermKeys;
}

const SEARCH = searchItems(INDEX.held);

export function postgresMemory(
  database: () => Promise<OpenDatabase>,
  spaceBytesMax: number,
): MemoryEngine {
  const signals = new Map<string, TenantSignals>();
  return {
    open: async () => (await database()).connections.memory,
    wordsOf: async (tenant) => {
      const keys = (await database()).keys.of(tenant);
      return {
        statement: SEARCH,
        valuesOf: (spaces, terms) => {
          const pairs = spaces.flatMap((space) =>
            terms.map((term, place) => ({ space, key: keys.keyOf(space, term), place })),
          );
          return columnsOf(pairs, ['space', 'key', 'place']);
        },
      };
    },
    async capture(tenant, batch, signal) {
      const { connections, keys } = await database();
      const place = { tenant, keys: keys.of(tenant), bytesMax: spaceBytesMax };
      return connections.memory.write((rows) => capture(rows, place, batch), signal);
    },
    async recall(tenant, question, signal) {
      const { connections, keys } = await database();
      const own = signals.get(tenant) ?? new TenantSignals(tenant);
      signals.set(tenant, own);
      await own.written();
      const heard: HeardSignal[] = [];
      const counted: WordCount[] = [];
      const answer = await connections.memory.read((rows) => {
        heard.length = 0;
        counted.length = 0;
        return answerTo(rows, { tenant, question }, (asked, records) => {
          const source = new PostgresSource(rows, tenant, { keys: keys.of(tenant), counted });
          const { space, olderSpaces = [], otherSpaces } = asked;
          const texts = records.textsOf(asked);
          const named = source.readSpaces([space, ...olderSpaces, ...otherSpaces]);
          const search = new Search(source, own.in(rows, heard));
          return {
            ready: Promise.all([texts, named]),
            recall: async () => searched(search, source, { asked, excludeDigests: await texts }),
          };
        });
      }, signal);
      own.write(connections, heard);
      keepCounts(connections, tenant, counted);
      return answer;
    },
    makeSpace: async (rows, tenant, space) => (await makeSpace(rows, tenant, space))?.id,
    forgetWords: (rows, tenant, space) => rows.run(INDEX.dropCounts, tenant, space),
    eraseTexts: async (rows, { tenant, space }, records) => {
      const erased = [tenant, space, records] as const;
      const gone = await rows.get<{ passages: number; terms: number }>(
        INDEX.erasePassages,
        ...erased,
      );
      await rows.run(INDEX.eraseTexts, ...erased);
      await rows.run(INDEX.shrinkIndex, tenant, space, gone?.passages ?? 0, gone?.terms ?? 0);
    },
  };
}

async function searched(
  search: Search,
  source: PostgresSource,
  { asked, excludeDigests }: { readonly asked: AskedText; readonly excludeDigests: string[] },
): Promise<FoundItems> {
  const question = { ...asked, excludeDigests };
  const { passages, ...more } = await runWaiting(search.recall(question, asked.otherSpaces));
  const found = passages.flatMap((passage) => {
    const item = source.itemOf(passage);
    return item === undefined ? [] : [{ ...item, passage }];
  });
  return { ...more, ...recalledItems(found, asked) };
}

/** How well a prompt matched its space, as a number for the running share: see src/core/recall/running-share.ts. */
interface HeardSignal {
  readonly space: number;
  readonly prompt: string;
  readonly signal: number;
}

/** Bound on the spaces of a tenant whose last prompt is cached. A prompt has some 2 kB. */
const SPACES_MAX = 100;
/** How long a recall waits until the signals of the recall before it are stored. */
const WAIT_MS = 50;

/**
 * Stores the signals of the last 200 prompts of each space, because a recall compares a new prompt with them. They are
 * written after the answer, so the request does not wait for them, but the tenant's next recall on this node does, for
 * at most WAIT_MS. A lost signal makes the comparison slightly less exact.
 */
class TenantSignals {
  readonly #tenant: string;
  /** The last prompt of each space whose signal was stored. A repeated prompt does not count again. */
  readonly #lastPrompts = new Recent<number, string>(SPACES_MAX);
  #writing: Promise<unknown> = Promise.resolve();

  constructor(tenant: string) {
    this.#tenant = tenant;
  }

  /** Returns the signals for one recall. `heard`: collects the recall's own signals, for write(). */
  in(rows: Rows, heard: HeardSignal[]): SharedSignals {
    return {
      of: (space) => waitFor(this.#of(rows, space)),
      add: (space, prompt, signal) => heard.push({ space, prompt, signal }),
    };
  }

  /** Waits until the last signals are written, but not longer than WAIT_MS. */
  written(): Promise<unknown> {
    return within(WAIT_MS, this.#writing);
  }

  write(connections: Connections, heard: readonly HeardSignal[]): void {
    const fresh = heard.filter(({ space, prompt }) => this.#lastPrompts.get(space) !== prompt);
    if (fresh.length === 0) return;
    for (const { space, prompt } of fresh) this.#lastPrompts.set(space, prompt);
    const written = connections.all.write((rows) => this.#note(rows, fresh));
    this.#writing = written.catch(() => undefined);
  }

  async #of(rows: Rows, space: number): Promise<readonly number[]> {
    const found = await rows.all<{ signal: number }>(INDEX.signals, this.#tenant, space);
    return found.map(({ signal }) => signal);
  }

  async #note(rows: Rows, heard: readonly HeardSignal[]): Promise<void> {
    for (const { space, signal } of heard) {
      // oxlint-disable-next-line no-await-in-loop -- A connection answers one query after the other.
      await rows.run(INDEX.addSignal, this.#tenant, space, signal);
      // oxlint-disable-next-line no-await-in-loop
      await rows.run(INDEX.dropSignals, this.#tenant, space, SIGNALS_MAX);
    }
  }
}
