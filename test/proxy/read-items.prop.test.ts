import { viewIn, viewRequest } from '../support/view-of.ts';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { outputsOf, seenOutputsOf } from '../../src/core/shortening/outputs.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { referenceOf, textDigest } from '../../src/core/memory/reference.ts';
import { Conversations } from '../../src/proxy/conversations.ts';
import { type Round, sessionBody } from '../support/tool-session.ts';

const UNCHANGED = 'File unchanged since last read. The content above still counts.';

/** A few rounds that say different things, the same thing, or read an earlier one again. */
const ROUND = fc.record({
  said: fc.nat({ max: 5 }),
  does: fc.constantFrom('says', 'reads', 'refers', 'repeats the id'),
});

function roundOf({ said, does }: { said: number; does: string }, at: number): Round {
  const output = does === 'refers' ? UNCHANGED : `output number ${said}`;
  const reference = referenceOf(textDigest('tool', `output number ${said}`));
  return {
    id: does === 'repeats the id' ? `call_${said}` : `call_${at}`,
    tool: 'Read',
    args: {
      file_path: `/src/${said}.ts`,
      ...(does === 'reads' ? { command: `svc memory get ${reference}` } : {}),
    },
    output,
  };
}

/** How a conversation goes on: it grows, is rewound, and grows otherwise from there. */
const HISTORY = fc.array(
  fc.record({ keep: fc.nat({ max: 30 }), more: fc.array(ROUND, { minLength: 1, maxLength: 9 }) }),
  { minLength: 2, maxLength: 12 },
);

test('outputs of remembered items are those of the items read anew', () => {
  fc.assert(
    fc.property(HISTORY, fc.constantFrom(...DIALECTS), (history, dialect) => {
      const conversations = new Conversations();
      let rounds: Round[] = [];
      for (const { keep, more } of history) {
        // Mostly it goes on from its end.
        rounds = keep < 8 ? rounds.slice(0, keep) : rounds;
        rounds = [...rounds, ...more.map((round, at) => roundOf(round, rounds.length + at))];
        const bytes = Buffer.from(JSON.stringify(sessionBody(dialect, rounds)));
        const view = viewIn(conversations, bytes, dialect);
        const anew = viewRequest(bytes, dialect);
        if (view === undefined || anew === undefined) throw new Error('The body cannot be read.');
        expect(seenOutputsOf(view)).toEqual(seenOutputsOf(anew));
        expect(outputsOf(view)).toEqual(outputsOf(anew));
      }
    }),
    { numRuns: 150 },
  );
});
