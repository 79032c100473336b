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
 * What svc makes of words: what a memory keeps of them, what is masked in them, and how a block quotes
 * memories. Every method is pure: the same words always give the same result.
 */
export interface Texts {
  /** Whether the text holds a secret. True also for a text that the rules cannot read to its end. */
  hasSecret(text: string): boolean;
  /** The record of what a person typed, masked; undefined where it is not worth keeping. */
  captureHuman(humanText: string, heard?: Heard): RecordText | undefined;
  /** The record of a whole visible answer, masked, without what it repeats of `heard`; undefined where nothing is left. */
  captureAssistant(assistantText: string, heard?: Heard): RecordText | undefined;
  /** The question for a recall, masked; its beginning and its end where it is longer. */
  questionText(text: string, charsMax: number): string;
  /** The texts of an exchange as records have them. Slow: it masks both. */
  cleanExchange(exchange: Pick<Exchange, 'humanText' | 'assistantText'>): CleanExchange;
  /** Computes the digests under which the memory holds the texts of this exchange. `blocks`: svc's blocks in the request. */
  heldDigests(clean: CleanExchange, blocks: readonly string[]): readonly string[];
  /**
   * Writes the block that quotes an answer of the memory, within the limits and in svc's fence; '' where nothing
   * fits. `told`: the blocks that the model still reads, which are not repeated.
   */
  writeBlock(answer: QuotedAnswer, limits: AgentLimits, told: readonly string[]): WrittenBlock;
  /** The answer of a memory without the passages that are not about the action. */
  aboutAction(answer: RecallAnswer, action: Action, prompt: string): RecallAnswer;
  /** The names of the files that the calls of the session name. */
  filesOfSession(view: RequestView): readonly string[];
  /** The paths of the files that an exchange is about, those that it edited first. */
  concernedFiles(view: RequestView, exchange: Exchange, said: string): readonly string[];
}

/** A block with the records that it quotes. */
export interface WrittenBlock extends RecallBlock {
  readonly quoted: readonly QuotedRecord[];
}

/** An answer of the memory; an exchange may be marked as outgrown. */
export interface QuotedAnswer extends RecallAnswer {
  readonly exchanges?: readonly QuotedExchange[];
}

interface QuotedExchange extends LocatedExchange {
  /** One of its files has changed since then. */
  readonly isOutgrown?: true;
}
