import type { QuotedRecord } from '../core/ledger/entries.ts';
import { type AgentLimits, writeAgentBlock } from '../core/recall/agent-block.ts';
import { quotedRecords } from '../core/recall/quoted-records.ts';
import { type RecallBlock, writeRecallBlock } from '../core/recall/recall-block.ts';
import type { LocatedExchange, RecallAnswer } from '../ports/memory.ts';

/** An answer of the memory. An exchange in it may be marked as outgrown: one of its files has changed since. */
export interface QuotedAnswer extends RecallAnswer {
  readonly exchanges?: readonly QuotedExchange[];
}

interface QuotedExchange extends LocatedExchange {
  /** True if one of the exchange's files has changed since the exchange. */
  readonly isOutgrown?: true;
}

export interface WrittenBlock extends RecallBlock {
  readonly quoted: readonly QuotedRecord[];
}

/**
 * Writes the text (block) that quotes the memory's answer within the limits, between svc's opening and closing line. It
 * is '' if nothing fits. `told`: the blocks that the model already has; their lines are not repeated.
 */
export function writeBlock(
  answer: QuotedAnswer,
  limits: AgentLimits,
  told: readonly string[],
): WrittenBlock {
  const { passages, exchanges, sessions = [] } = answer;
  const block =
    exchanges === undefined
      ? writeRecallBlock(passages, limits.tokensMax, told)
      : writeAgentBlock({ standing: passages, exchanges, sessions }, limits, told);
  return { ...block, quoted: quotedRecords(block.text, answer) };
}
