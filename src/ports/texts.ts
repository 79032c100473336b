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

/** Processes texts: what a memory stores, what is masked, how a block quotes. Every method is pure. */
export interface Texts {
  /** Returns the masked record of a user's typed text; undefined if it is not worth storing. */
  captureHuman(humanText: string, heard?: Heard): RecordText | undefined;
  /**
   * Returns the masked record of a whole visible answer, without what repeats `heard`; undefined if nothing is left.
   */
  captureAssistant(assistantText: string, heard?: Heard, lastText?: string): RecordText | undefined;
  /** Returns the masked question for a recall; of a longer text its beginning and its end. */
  questionText(text: string, charsMax: number): string;
  /** Returns the texts of an exchange as records have them. Slow, because it masks both. */
  cleanExchange(exchange: Pick<Exchange, 'humanText' | 'assistantText'>): CleanExchange;
  /** Computes the digests under which the memory stores an exchange. `blocks`: svc's blocks in the request. */
  heldDigests(clean: CleanExchange, blocks: readonly string[]): readonly string[];
  /**
   * Writes the block that quotes the memory's answer, within the limits and in svc's fence; '' if nothing fits.
   * `told`: the blocks that the model still has, which are not repeated.
   */
  writeBlock(answer: QuotedAnswer, limits: AgentLimits, told: readonly string[]): WrittenBlock;
  /** Returns the memory's answer with only the passages about the action. */
  aboutAction(answer: RecallAnswer, action: Action, prompt: string): RecallAnswer;
  filesOfSession(view: RequestView): readonly string[];
  /** Returns the paths of the files that an exchange is about, edited ones first. */
  concernedFiles(view: RequestView, exchange: Exchange, said: string): readonly string[];
}

export interface WrittenBlock extends RecallBlock {
  readonly quoted: readonly QuotedRecord[];
}

/** An answer of the memory whose exchanges may be marked as outgrown. */
export interface QuotedAnswer extends RecallAnswer {
  readonly exchanges?: readonly QuotedExchange[];
}

interface QuotedExchange extends LocatedExchange {
  /** True if one of the exchange's files has changed since then. */
  readonly isOutgrown?: true;
}
