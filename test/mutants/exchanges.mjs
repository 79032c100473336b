/** Safety checks of leaving whole exchanges out, in the form of list.mjs. */

const OMISSIONS_CORE = 'test/core/omissions.prop.test.ts';
const OMISSIONS_PROXY = 'test/proxy/omissions.test.ts';
const OMISSIONS = 'src/core/shortening/omissions.ts';
const REMOVAL = 'src/core/shortening/removal.ts';
const DECIDE = 'src/core/shortening/removal.ts';

export const EXCHANGE_MUTANTS = [
  {
    name: 'no proof is needed for a new exchange',
    file: REMOVAL,
    from: 'removal.omissions.filter(areHeld)',
    to: 'removal.omissions',
    test: OMISSIONS_PROXY,
    only: 'holds nothing',
  },
  {
    name: 'no proof is needed for an exchange that was out',
    file: REMOVAL,
    from: 'removal.omitted.filter(areHeld)',
    to: 'removal.omitted',
    test: OMISSIONS_PROXY,
    only: 'forgotten',
  },
  {
    name: 'half a proof is enough',
    file: OMISSIONS,
    from: 'texts.every(({ digest })',
    to: 'texts.some(({ digest })',
    test: OMISSIONS_CORE,
  },
  {
    name: 'an exchange goes though nothing was recalled',
    file: REMOVAL,
    from: ": 'recall_empty'",
    to: ': undefined',
    test: OMISSIONS_CORE,
  },
  {
    name: 'an exchange goes for what another prompt was told',
    file: REMOVAL,
    from: 'item === newest && tellsExchanges',
    to: 'item !== undefined && tellsExchanges',
    test: OMISSIONS_CORE,
  },
  {
    name: 'what a leaving block told counts as told',
    file: 'src/proxy/recall.ts',
    from: 'isOmitted(item, going) ? [] : [block]',
    to: 'isOmitted(item, going) ? [block] : [block]',
    test: OMISSIONS_PROXY,
    only: 'a fact',
  },
  {
    name: 'what a block told that left counts as told',
    file: 'src/proxy/recall.ts',
    from: 'isOmitted(item, leaving.gone)',
    to: 'isOmitted(item, [])',
    test: OMISSIONS_PROXY,
    only: 'a fact',
  },
  {
    name: 'a long text leaves a client that cannot read it again',
    file: REMOVAL,
    from: '(canRead || isShortText(it))',
    to: 'true',
    test: OMISSIONS_PROXY,
    only: 'pasted',
  },
  {
    name: 'exchanges leave where a tool was called',
    file: REMOVAL,
    from: 'omittable: callsTools',
    to: 'omittable: callsTools && false',
    test: OMISSIONS_CORE,
  },
  {
    name: 'a batch leaves a request that is within its budget',
    file: DECIDE,
    from: "if (facts.wholeTokens <= facts.inputBudget) return 'within_budget';",
    to: '',
    test: OMISSIONS_CORE,
  },
  {
    name: 'what is out comes back where a request is within its budget again',
    file: DECIDE,
    from: 'if (!isDue && !hasBatches)',
    to: 'if (!isDue)',
    test: 'test/proxy/edited-chat.test.ts',
    only: 'anthropic_messages.*goes on',
  },
  {
    name: 'the last exchanges go',
    file: OMISSIONS,
    from: 'exchanges.slice(0, -KEPT_EXCHANGES)',
    to: 'exchanges.slice(0, -1)',
    test: OMISSIONS_CORE,
  },
  {
    name: 'more than one text may stand in it',
    file: OMISSIONS,
    from: 'parts.length === 1 && ',
    to: '',
    test: OMISSIONS_CORE,
  },
  {
    name: 'masked words count as kept',
    file: OMISSIONS,
    from: 'human?.text === question && assistant?.text === answer',
    to: 'true',
    test: OMISSIONS_CORE,
  },
];
