import {
  captureAssistant,
  captureHuman,
  cleanExchange,
  heldDigests,
  questionText,
} from '../core/memory/captures.ts';
import { concernedFiles, filesOfSession } from '../core/memory/concerned-files.ts';
import { writeAgentBlock } from '../core/recall/agent-block.ts';
import { passagesAbout } from '../core/recall/cues.ts';
import { isOpening } from '../core/recall/openings.ts';
import { quotedRecords, statedIn } from '../core/recall/quoted-records.ts';
import { writeRecallBlock } from '../core/recall/recall-block.ts';
import type { Texts } from '../ports/texts.ts';

/** Implements the port Texts with the rules of the core. */
export const TEXTS: Texts = {
  captureHuman,
  captureAssistant,
  questionText,
  cleanExchange,
  heldDigests,
  writeBlock: (answer, limits, told) => {
    const { passages, exchanges, sessions = [] } = answer;
    const block =
      exchanges === undefined
        ? writeRecallBlock(passages, limits.tokensMax, told)
        : writeAgentBlock({ standing: passages, exchanges, sessions }, limits, told);
    return { ...block, quoted: quotedRecords(block.text, answer) };
  },
  // A memory without exchanges ignores the action and returns any passages, so filter them here.
  aboutAction: (answer, action, prompt) =>
    answer.exchanges === undefined
      ? { ...answer, passages: passagesAbout(answer.passages, action, prompt) }
      : answer,
  withoutStated: (answer, view) => {
    const isStated = statedIn(view);
    const isNew = ({ text }: { readonly text: string }): boolean => !isStated(text);
    const exchanges = answer.exchanges?.flatMap((exchange) => {
      const quotes = exchange.quotes.filter(isNew);
      return quotes.length === 0 ? [] : { ...exchange, quotes };
    });
    return { ...answer, passages: answer.passages.filter(isNew), ...(exchanges && { exchanges }) };
  },
  isOpening,
  filesOfSession,
  concernedFiles,
};
