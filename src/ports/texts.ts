import type { Exchange } from '../core/conversation/exchanges.ts';
import type { RequestView } from '../core/conversation/view.ts';
import type { QuotedRecord } from '../core/ledger/entries.ts';
import type { CleanExchange } from '../core/memory/captures.ts';
import type { Heard } from '../core/memory/echoes.ts';
import type { RecordText } from '../core/memory/record.ts';
import type { AgentLimits } from '../core/recall/agent-block.ts';
import type { RecallBlock } from '../core/recall/recall-block.ts';
import type { Action } from '../core/recall/second-look.ts';
import type { LocatedExchange, RecallAnswer } from './memory.ts';

/**
 * Decides what of a text is stored, masks secrets, and writes the blocks that quote memories. No method does I/O. A
 * result depends on the arguments, and on the secrets that svc masks by value (core/redaction/own-secrets.ts).
 */
export interface Texts {
  /**
   * Returns the masked record of a text that the user typed; undefined if it is not worth storing. svc's own blocks are
   * left out: those in `heard`, and those that are recognised by their fence.
   */
  captureHuman(humanText: string, heard?: Heard): RecordText | undefined;
  /**
   * Returns the masked record of a whole visible answer; undefined if nothing is left to store. `heard`: the memories
   * in the request; the record has no sentence that only repeats one. `lastText`: the text after the last tool call.
   */
  captureAssistant(assistantText: string, heard?: Heard, lastText?: string): RecordText | undefined;
  /** Returns the masked question for a recall. A text longer than `charsMax` is cut to its beginning and its end. */
  questionText(text: string, charsMax: number): string;
  /** Returns both texts of an exchange as the memory stores them. It is slow, because it masks both. */
  cleanExchange(exchange: Pick<Exchange, 'humanText' | 'assistantText'>): CleanExchange;
  /** Computes the digests under which the memory stores an exchange. `blocks`: svc's blocks in the request. */
  heldDigests(clean: CleanExchange, blocks: readonly string[]): readonly string[];
  /**
   * Writes the block that quotes the memory's answer, between svc's opening and closing tags. It keeps to the limits,
   * and is '' if nothing fits. `told`: the blocks that the prompt already contains, whose lines are not repeated.
   */
  writeBlock(answer: QuotedAnswer, limits: AgentLimits, told: readonly string[]): WrittenBlock;
  /** Returns the memory's answer with only the passages about the action. */
  aboutAction(answer: RecallAnswer, action: Action, prompt: string): RecallAnswer;
  /**
   * Returns the memory's answer without the texts that stand where clients put instructions (CLAUDE.md, AGENTS.md):
   * before the request's first answer, or behind its messages.
   */
  withoutStated(answer: QuotedAnswer, view: RequestView): QuotedAnswer;
  /**
   * Says whether the newest prompt is the first in its session that may name a subject: all earlier ones only answer
   * the agent.
   */
  isOpening(view: RequestView): boolean;
  filesOfSession(view: RequestView): readonly string[];
  /** Returns the paths of the files that an exchange is about, edited ones first. */
  concernedFiles(view: RequestView, exchange: Exchange, said: string): readonly string[];
}

export interface WrittenBlock extends RecallBlock {
  readonly quoted: readonly QuotedRecord[];
}

/** An answer of the memory. An exchange in it may be marked as outgrown: one of its files has changed since. */
export interface QuotedAnswer extends RecallAnswer {
  readonly exchanges?: readonly QuotedExchange[];
}

interface QuotedExchange extends LocatedExchange {
  /** True if one of the exchange's files has changed since the exchange. */
  readonly isOutgrown?: true;
}
