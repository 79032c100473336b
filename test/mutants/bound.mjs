/** The rules of law 7, each switched off by one change, and the test that must then fail. */

const BONDS = 'src/proxy/bonds.ts';
const RECALL = 'src/proxy/recall.ts';
const INJECTIONS = 'src/core/recall/injections.ts';
const FORWARD = 'src/proxy/forward.ts';
const HANDLE = 'src/proxy/handle.ts';
const BOUND_TEST = 'test/proxy/placed-again.test.ts';
const LADDER_TEST = 'test/proxy/refused-forms.test.ts';
const LOOK = 'test/proxy/second-look.test.ts';
const CORE = 'test/core/injections.test.ts';

export const BOUND = [
  {
    name: 'a placed block is named without its form',
    file: INJECTIONS,
    from: 'JSON.stringify([form, space, block])',
    to: 'JSON.stringify([space, block])',
    test: BOUND_TEST,
  },
  {
    name: 'a placed block is named without its space',
    file: INJECTIONS,
    from: 'JSON.stringify([form, space, block])',
    to: 'JSON.stringify([form, block])',
    test: 'test/proxy/purged-elsewhere.test.ts',
  },
  {
    name: 'a note about left-out exchanges is a part of its own in a list',
    file: 'src/core/shortening/omissions.ts',
    from: "? 'text' : form;",
    to: "? 'part' : form;",
    test: 'test/core/omissions.prop.test.ts',
  },
  {
    name: 'a model that binds counts as one that does not',
    file: 'src/core/conversation/thoughts.ts',
    from: 'Number(major) * 10 + Number(minor) > newest',
    to: 'false',
    test: BOUND_TEST,
  },
  {
    name: 'thinking is not recorded',
    file: BONDS,
    from: '    const blocks = placedMarks(placements);\n    const at',
    to: '    const blocks = [];\n    const at',
    test: BOUND_TEST,
  },
  {
    name: 'an edit of the client takes the blocks in front of it away',
    file: BONDS,
    from: 'if (known.behind === thought.behind) return bondOf(known, thoughtAt);\n    return this.#lookBefore(reading, thoughtAt);',
    to: 'return known.behind === thought.behind ? bondOf(known, thoughtAt) : { ...FOREIGN, thoughtAt };',
    test: BOUND_TEST,
  },
  {
    name: 'a batch of a fork counts in front of bound thinking',
    file: 'src/proxy/shortener.ts',
    from: '({ at }) => bond?.batches?.includes(markAt(at)) !== false',
    to: '() => true',
    test: 'test/proxy/edited-history.test.ts',
  },
  {
    name: 'a text that came back leaves again in front of bound thinking',
    file: 'src/core/shortening/removal.ts',
    from: 'new Set(request.isBound ? request.whole : [])',
    to: 'new Set<string>()',
    test: 'test/proxy/edited-history.test.ts',
  },
  {
    name: 'the batches of a bound conversation wait no longer for the ledger',
    file: 'src/proxy/shortener.ts',
    from: 'Math.max(BOUND_MS, msLeft)',
    to: 'msLeft',
    test: 'test/proxy/edited-history.test.ts',
  },
  {
    name: 'after an edit before all thinking no answer is known',
    file: BONDS,
    from: 'cached: cached.at(-1)',
    to: 'cached: undefined',
    test: LOOK,
  },
  {
    name: 'in a tool loop without thinking the last final answer is not looked up',
    file: BONDS,
    from: 'finalAnswers(reading.view.items).slice(-answersMax)',
    to: "[reading.view.items.findLastIndex(({ role }) => role === 'assistant')]",
    test: LOOK,
    only: 'a refused block does not come back',
  },
  {
    name: 'the mode takes a placed block back',
    file: RECALL,
    from: "return isBound || silence === undefined || silence === 'skipped_side_call';",
    to: 'return silence === undefined;',
    test: BOUND_TEST,
  },
  {
    name: 'a side request goes without the blocks before it',
    file: RECALL,
    from: " || silence === 'skipped_side_call'",
    to: '',
    test: BOUND_TEST,
  },
  {
    name: 'what was sent in front of thinking does not count',
    file: INJECTIONS,
    from: 'carrier.index < thoughtAt ? placed : undefined',
    to: 'undefined',
    test: CORE,
  },
  {
    name: 'a block goes into a result that was sent without it',
    file: 'src/proxy/recall.ts',
    from: 'if (state.newest === view.items.at(-1)?.fingerprint) return undefined;',
    to: '',
    test: LOOK,
  },
  {
    name: 'a second look that found nothing is not recorded',
    file: 'src/proxy/recall.ts',
    from: "if (recalled.state.startsWith('degraded_')) await this.#settle(look, placements, undefined);",
    to: '',
    test: LOOK,
  },
  {
    name: 'a block goes into JSON',
    file: 'src/core/plan/item-edits.ts',
    from: ' && !JSON_TEXT.test(said)',
    to: '',
    test: LOOK,
  },
  {
    name: 'a key gets the blocks of a space that it may not read',
    file: INJECTIONS,
    from: 'facts.mayRead?.(space) === false',
    to: 'false',
    test: CORE,
  },
  {
    name: 'a bound conversation is shortened',
    file: 'src/core/shortening/removal.ts',
    from: "return facts.isBound ? 'protected' : 'leaves';",
    to: "return 'leaves';",
    test: 'test/core/decide.test.ts',
  },
  {
    name: 'thinking is part of what a message says',
    file: 'src/core/conversation/fingerprint.ts',
    from: 'if (isThinkingBlock(bytes, at)) {',
    to: 'if (false) {',
    test: 'test/core/fingerprint.test.ts',
  },
  {
    name: 'edits in front of bound thinking are left out at any refusal',
    file: FORWARD,
    from: 'if (form.breaksBond === true && !isBondBroken) continue;',
    to: '',
    test: LADDER_TEST,
  },
  {
    name: 'the last refusal reaches the client',
    file: FORWARD,
    from: 'return first;\n}\n\n/** Sends another form',
    to: 'return sendForm(planned.body, call);\n}\n\n/** Sends a fallback',
    test: LADDER_TEST,
  },
  {
    name: 'the accepted edits are not tried',
    file: HANDLE,
    from: 'return isAdding ? [form, { ...own, breaksBond }] : [{ ...own, breaksBond }];',
    to: 'return [{ ...own, breaksBond }];',
    test: LADDER_TEST,
  },
];
