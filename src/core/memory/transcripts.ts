import { hash } from 'node:crypto';
import { captureAssistant, captureHuman } from './captures.ts';
import { markedBlocks, NO_BLOCKS, type OwnBlocks } from '../recall/own-blocks.ts';
import type { MemoryRecord, RecordText, SpeakerRole } from './record.ts';
import { type Fields, parseJson, recordOrNone, textOrNone } from '../bytes/json-fields.ts';
import { readItem } from '../dialects/dialects.ts';
import { NO_TRAITS, textsOf } from '../dialects/common.ts';
import { type Exchange, groupExchanges } from '../conversation/exchanges.ts';
import { DEFAULT_SPACE, folderSpace } from '../request/space.ts';
import type { ItemTraits } from '../conversation/view.ts';
import { isTime } from './times.ts';
import { stepOf, type TranscriptClient, type TranscriptStep } from './transcript-forms.ts';

/**
 * Reads the transcripts that clients store on disk, line by line (their forms are in `transcript-forms.ts`). As in
 * live traffic, memories are the user's typed text and the assistant's visible answer; never sub-agents, summaries
 * of a compaction, reasoning or tools.
 */

/** A record with the time of its text; if the transcript states none, that of the file or of an earlier line. */
export interface TranscriptRecord extends MemoryRecord<SpeakerRole> {
  readonly client: TranscriptClient;
  readonly isTimed: true;
}

interface Entry {
  readonly item: ItemTraits;
  readonly at: number;
  readonly isCut: boolean;
  /** True if the entry is new since the session was last read. */
  readonly isFresh: boolean;
  /** Blocks of svc's hooks, if the entry has only those. */
  readonly blocks?: readonly string[];
  /** True if a compaction follows directly, so that the model no longer reads this entry and those before it. */
  readonly isCompacted?: true;
}

/** Facts about a session that are not in its transcript. */
export interface SessionFacts {
  /** The name of the session, if the transcript has none. */
  readonly name: string;
  /** Returns the blocks that the proxy added to a prompt with these words. */
  readonly placedAt?: (humanText: string) => readonly string[];
}

export class TranscriptReader {
  readonly #client: TranscriptClient;
  readonly #own: OwnBlocks;
  #entries: Entry[] = [];
  /**
   * Branches that the user left by returning to an earlier prompt. The entries before index `from` also belong to the
   * conversation that continued.
   */
  #abandoned: { readonly entries: readonly Entry[]; readonly from: number }[] = [];
  /** For each line's id, the number of entries up to and including that line. */
  readonly #entriesAt = new Map([['', 0]]);
  /** Blocks of svc's hooks from before the first entry. */
  readonly #openingBlocks: string[] = [];
  #session = '';
  #folder: string | undefined;
  #branch: string | undefined;
  #isSubAgents = false;

  /** `own`: what recognises the blocks of svc's hooks. Answers that only repeat such a block are not stored. */
  constructor(client: TranscriptClient, own: OwnBlocks = NO_BLOCKS) {
    this.#client = client;
    this.#own = own;
  }

  /** Reads a line: a message, or facts about the session. Skips it if it is no JSON object. */
  push(line: string): void {
    const fields = recordOrNone(parseJson(line));
    if (fields !== undefined) this.take(fields);
  }

  /** Takes a line whose JSON is parsed already. */
  take(fields: Fields): void {
    if (this.#client === 'codex') this.#takeCodex(fields);
    else this.#follow(stepOf(this.#client, fields));
  }

  /** Marks all entries so far as read. finish() then returns only records of exchanges with later entries. */
  readBefore(): void {
    this.#entries = this.#entries.map(asRead);
    this.#abandoned = this.#abandoned.map(({ entries, from }) => ({
      entries: entries.map(asRead),
      from,
    }));
  }

  get prompts(): readonly string[] {
    return this.#entries.map(({ item }) => item.humanText).filter((text) => text !== '');
  }

  /** The folder in which the session worked; undefined if the transcript does not say so. */
  get folder(): string | undefined {
    return this.#folder ?? this.#stated('workingFolder');
  }

  /** The last entry that is more than blocks of hooks. */
  get #last(): Entry | undefined {
    return this.#entries.findLast(({ blocks }) => blocks === undefined);
  }

  /** Says whether the transcript has the last answer already. `answer`: its text; '' if the client states none. */
  endsWith(answer: string): boolean {
    const last = this.#last;
    const said = last?.item.assistantText.trim() ?? '';
    if (answer.trim() === '') return said !== '' && last?.isFresh === true;
    return said !== '' && (said.includes(answer.trim()) || answer.includes(said));
  }

  /**
   * Adds the last answer, which a client may report to a hook before it writes it to the transcript. Returns false if
   * something before the answer is missing too: its prompt, or the result of a tool.
   */
  end(answer: string, at: number): boolean {
    const last = this.#last;
    if (last === undefined || last.item.role === 'assistant') return false;
    this.#add(readItem('anthropic_messages', { role: 'assistant', content: answer }), at);
    return true;
  }

  /**
   * Returns the records of the session in the order of the conversation, or by time if the user left a branch; none for
   * a session of a sub-agent.
   */
  finish(facts: SessionFacts): TranscriptRecord[] {
    if (this.#isSubAgents) return [];
    const left = this.#abandoned.flatMap(({ entries, from }) =>
      this.#recordsFrom(entries, { ...facts, from, isLeft: true }),
    );
    const current = this.#recordsFrom(this.#entries, { ...facts, from: 0, isLeft: false });
    return left.length === 0 ? current : [...left, ...current].toSorted((a, b) => a.at - b.at);
  }

  #recordsFrom(
    entries: readonly Entry[],
    { from, isLeft, ...facts }: SessionFacts & { from: number; isLeft: boolean },
  ): TranscriptRecord[] {
    const exchanges = groupExchanges(entries.map(({ item }) => item));
    let fingerprint = '';
    return exchanges.flatMap((exchange, index) => {
      if (exchange.human === undefined) return [];
      fingerprint = hash('sha256', `${fingerprint}\n${exchange.humanText}`, 'base64url');
      if (exchange.start < from) return [];
      // The user took this prompt back before it was answered.
      if (isLeft && exchange.assistantText === '') return [];
      const said = entries.slice(exchange.start, exchange.end);
      if (!said.some(({ isFresh, blocks }) => isFresh && blocks === undefined)) return [];
      return this.#recordsOf(exchange, { ...facts, index, fingerprint, entries });
    });
  }

  #follow(step: TranscriptStep): void {
    const { message, parent, id, at, hasFrames = false, hookTexts = [] } = step;
    this.#session ||= step.session ?? '';
    this.#folder ??= step.folder;
    this.#branch = step.branch ?? this.#branch;
    if (message !== undefined) {
      const item = readItem('anthropic_messages', message, () => hasFrames);
      if (item.humanText !== '') this.#followFork(parent);
      this.#add(item, at, step.isCut);
    }
    if (step.isCompacted === true) this.#compact();
    for (const text of hookTexts) this.#addHookText(textOrNone(text) ?? '');
    if (id !== undefined) this.#entriesAt.set(id, this.#entries.length);
  }

  /**
   * Follows an edit or a return to an earlier prompt: the new line continues from its parent, and the entries after
   * the parent are abandoned.
   */
  #followFork(parent: string | undefined): void {
    const from = parent === undefined ? undefined : this.#entriesAt.get(parent);
    if (from === undefined) return;
    // Results of parallel calls have other parents than the line before them, but are no fork.
    if (this.#entries.slice(from).some(isPrompt)) this.#goBackTo(from);
  }

  /** Follows a line in which Codex reports how many prompts the user took back, with everything after them. */
  #followRollback({ type, num_turns: count }: Fields): void {
    if (type !== 'thread_rolled_back' || typeof count !== 'number' || !(count >= 1)) return;
    const prompts = this.#entries.flatMap((entry, at) => (isPrompt(entry) ? [at] : []));
    const from = prompts.at(-count) ?? prompts[0];
    if (from !== undefined) this.#goBackTo(from);
  }

  #goBackTo(from: number): void {
    this.#abandoned.push({ entries: this.#entries, from });
    this.#entries = this.#entries.slice(0, from);
  }

  #takeCodex(fields: Fields): void {
    const { type, timestamp } = fields;
    const payload = recordOrNone(fields['payload']);
    // Until 2025 lines had no envelope, and the session's facts came first.
    if (payload === undefined) {
      if (type === undefined) this.#readMeta(fields);
      else this.#add(readItem('openai_responses', fields), timestamp);
      return;
    }
    if (type === 'session_meta') this.#readMeta(payload);
    if (type === 'turn_context') this.#folder ??= textOrNone(payload['cwd']);
    if (type === 'event_msg') this.#followRollback(payload);
    if (type === 'compacted') this.#compact();
    if (type !== 'response_item') return;
    this.#add(readItem('openai_responses', payload), timestamp);
    if (payload['role'] !== 'developer') return;
    for (const text of textsOf(payload['content'])) this.#addHookText(text);
  }

  /** Adds a text of svc's own hooks, which it recognises by the mark. It ignores other texts. */
  #addHookText(text: string): void {
    const { key } = this.#own;
    const added = key === '' ? [] : markedBlocks(text, key);
    if (added.length === 0) return;
    // Before the first prompt, add no entry: without a prompt it would count as an exchange.
    if (this.#entries.length === 0) this.#openingBlocks.push(...added);
    else {
      this.#add(NO_TRAITS, undefined);
      this.#addToLast({ blocks: added });
    }
  }

  /** Notes a compaction: the model no longer reads the messages and blocks before it. */
  #compact(): void {
    if (this.#entries.length === 0) this.#openingBlocks.length = 0;
    this.#addToLast({ isCompacted: true });
  }

  #addToLast(more: Pick<Entry, 'blocks' | 'isCompacted'>): void {
    const last = this.#entries.pop();
    if (last !== undefined) this.#entries.push({ ...last, ...more });
  }

  #readMeta(meta: Fields): void {
    // The transcript of a fork repeats this line of its original session. Only the first such line is the fork's own.
    if (this.#session !== '') return;
    this.#session = textOrNone(meta['id']) ?? '';
    this.#folder = textOrNone(meta['cwd']);
    this.#branch = textOrNone(recordOrNone(meta['git'])?.['branch']);
    const source = meta['thread_source'];
    this.#isSubAgents =
      recordOrNone(meta['source']) !== undefined || (source !== undefined && source !== 'user');
  }

  #add(item: ItemTraits, timestamp: unknown, isCut = false): void {
    const at = typeof timestamp === 'string' ? Date.parse(timestamp) : timestamp;
    const before = this.#entries.at(-1)?.at ?? 0;
    this.#entries.push({ item, at: isTime(at) ? at : before, isCut, isFresh: true });
  }

  #recordsOf(exchange: Exchange, place: Place): TranscriptRecord[] {
    // An answer that was cut or interrupted, or that still waited for a tool, is not stored.
    const last = place.entries
      .slice(exchange.start, exchange.end)
      .findLast(({ item }) => item.assistantText !== '');
    const isWhole = !exchange.isOpen && !exchange.wasInterrupted && last?.isCut !== true;
    const blocks = this.#blocksBefore(exchange, place);
    const heard = { key: this.#own.key, blocks, question: exchange.humanText };
    const human = captureHuman(exchange.humanText, heard);
    const { assistantText, lastText } = exchange;
    const answer = isWhole ? captureAssistant(assistantText, heard, lastText) : undefined;
    return [
      ...this.#record(human, place, timeOf(place.entries, exchange.human)).map((record) =>
        exchange.isUnverified ? { ...record, source: 'unverified' as const } : record,
      ),
      ...this.#record(answer, place, timeOf(place.entries, exchange.end - 1)),
    ];
  }

  /** Returns the blocks of svc that the model had read before its last answer. */
  #blocksBefore({ start, end }: Exchange, { entries, placedAt }: Place): readonly string[] {
    const from = entries.slice(0, start).findLastIndex(({ isCompacted }) => isCompacted === true);
    const said = entries.slice(start, end).findLastIndex(({ item }) => item.assistantText !== '');
    const read = entries.slice(from + 1, said === -1 ? end : start + said);
    return [
      ...this.#own.blocks,
      ...(from === -1 ? this.#openingBlocks : []),
      ...read.flatMap(({ blocks = [], item }) => [
        ...(placedAt?.(item.humanText) ?? []),
        ...blocks,
      ]),
    ];
  }

  #record(text: RecordText | undefined, place: Place, at: number): TranscriptRecord[] {
    if (text === undefined) return [];
    const { folder } = this;
    const branch = this.#branch ?? this.#stated('branch');
    return [
      {
        ...text,
        space: folder === undefined || folder === '' ? DEFAULT_SPACE : folderSpace(folder),
        conversation: (this.#session === '' ? place.name : this.#session).slice(0, 128),
        client: this.#client,
        at,
        fingerprint: place.fingerprint,
        exchange: place.index,
        isTimed: true,
        ...(branch === undefined || branch === '' ? {} : { branch }),
      },
    ];
  }

  #stated(what: 'workingFolder' | 'branch'): string | undefined {
    return this.#entries.find(({ item }) => item[what] !== undefined)?.item[what];
  }
}

function asRead(entry: Entry): Entry {
  return { ...entry, isFresh: false };
}

function isPrompt({ item }: Entry): boolean {
  return item.humanText !== '';
}

interface Place extends SessionFacts {
  readonly entries: readonly Entry[];
  readonly index: number;
  readonly fingerprint: string;
}

function timeOf(entries: readonly Entry[], index: number | undefined): number {
  return entries[index ?? 0]?.at ?? 0;
}
