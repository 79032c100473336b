import { expect, test } from 'vitest';
import { writeAgentBlock } from '../../src/core/recall/agent-block.ts';
import { quoteExchange } from '../../src/core/recall/conclusions.ts';
import { quotesOfTexts } from '../../src/core/recall/quotes-of-texts.ts';
import { quotesIn } from '../../src/core/recall/recall-block.ts';
import { titlesFrom } from '../../src/core/recall/session-brief.ts';

const ASKED = 'Please fix the parser: it drops the last token of a slow stream since Tuesday.';
const ANSWERED = [
  'Now let me look.',
  '',
  '## Root cause',
  '',
  '- **`flushTail()`** in src/parser.ts returned before the last chunk of the stream was decoded.',
  `- The walrus gateway waits ${'for one more chunk of the slow stream '.repeat(12)}and gives up.`,
].join('\n');
const values = new Map([
  ['parser', 3],
  ['stream', 2],
  ['walrus', 4],
]);
const limits = { tokensMax: 512, briefTokensMax: 118 };
const at = Date.UTC(2026, 4, 1);

function blockOf(budget: number): string {
  const quotes = quoteExchange({ asked: ASKED, answered: ANSWERED }, values, { tokensMax: budget });
  const exchanges = [{ ref: 'm_aaaaaaaa', space: 'project', at, quotes }];
  return writeAgentBlock({ standing: [], exchanges, sessions: [] }, limits).text;
}

test.each([30, 60, 200])(
  'R26: lines of a forgotten text are found again, however short they were cut: %d tokens',
  (budget) => {
    const block = blockOf(budget);
    expect(quotesIn(block).length).toBeGreaterThan(1);
    for (const forgotten of [[ASKED], [ANSWERED]]) {
      expect(quotesIn(block).some(quotesOfTexts(forgotten)), forgotten[0]).toBe(true);
    }
    expect(quotesIn(block).some(quotesOfTexts(['The depot opens at nine.']))).toBe(false);
  },
);

test('R26: the title by which a brief names a session of a forgotten text is found again', () => {
  for (const title of titlesFrom(ASKED)) {
    const brief = { standing: [], exchanges: [], sessions: [{ at, title }] };
    const quotes = quotesIn(writeAgentBlock(brief, limits).text);
    expect(quotes.some(quotesOfTexts([ASKED]))).toBe(true);
    expect(quotes.some(quotesOfTexts([ANSWERED]))).toBe(false);
  }
});
