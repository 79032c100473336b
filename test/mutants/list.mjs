/**
 * Safety checks of shortening, each switched off by one change of the source, and the test file that
 * must then fail. `npm run mutants` (or `npm run mutants -- NAME`) runs them; not part of `npm test`.
 */

const CORE = 'test/core/shortening.prop.test.ts';
const PROXY = 'test/proxy/shortening.test.ts';
const OMISSIONS_CORE = 'test/core/omissions.prop.test.ts';
const OMISSIONS_PROXY = 'test/proxy/omissions.test.ts';
const OMISSIONS = 'src/core/omissions.ts';
const SHORTENING = 'src/core/shortening.ts';
const POSSESSION = 'src/proxy/possession.ts';
const SHORTENER = 'src/proxy/shortener.ts';

/** `from` stands in the file exactly once. */
export const MUTANTS = [
  {
    name: 'small outputs go too',
    file: SHORTENING,
    from: 'output.tokens >= OUTPUT_TOKENS_MIN &&',
    to: '',
    test: CORE,
  },
  {
    name: 'what may not be stored goes too',
    file: SHORTENING,
    from: '    output.isStorable &&\n',
    to: '',
    test: CORE,
  },
  {
    name: 'what was read again goes again',
    file: SHORTENING,
    from: '!reread.has(referenceOf(output.digest))',
    to: 'true',
    test: CORE,
  },
  {
    name: 'the answer of reading again goes',
    file: SHORTENING,
    from: '    !output.isReading &&\n',
    to: '',
    test: CORE,
  },
  {
    name: 'what a client’s stub refers to goes',
    file: SHORTENING,
    from: '    !output.isClients &&\n',
    to: '',
    test: CORE,
  },
  {
    name: 'what a client’s stub refers to stays out',
    file: SHORTENING,
    from: '(output) => facts.repeated.has(output) && !output.isClients && !output.isReading,',
    to: '(output) => facts.repeated.has(output),',
    test: CORE,
  },
  {
    name: 'the last rounds go',
    file: SHORTENING,
    from: 'const before = endBefore(facts.keepRounds);',
    to: 'const before = facts.items.length;',
    test: CORE,
  },
  {
    name: 'late tools go early',
    file: SHORTENING,
    from: '(isLate ? lateBefore : before)',
    to: 'before',
    test: CORE,
  },
  {
    name: 'nothing needs to be stored',
    file: SHORTENING,
    from: 'old.filter(({ digest }) => facts.isStored(digest))',
    to: 'old',
    test: CORE,
  },
  {
    name: 'no proof is needed for a batch',
    file: SHORTENING,
    from: 'wanted.batch.filter(({ digest }) => proven.has(digest))',
    to: 'wanted.batch',
    test: CORE,
  },
  {
    name: 'no proof is needed for what was out',
    file: SHORTENING,
    from: 'wanted.repeated.filter(({ digest }) => proven.has(digest))',
    to: 'wanted.repeated',
    test: PROXY,
    only: 'lost',
  },
  {
    name: 'no price is asked',
    file: SHORTENING,
    from: 'growthLeft, comingBack, prices }) > 0',
    to: 'growthLeft, comingBack, prices }) > -Infinity',
    test: CORE,
  },
  {
    name: 'nothing ever comes back',
    file: SHORTENING,
    from: 'fill.isAtEdge && !isCompaction && repeated.length + omitted.length > 0',
    to: 'false',
    test: CORE,
  },
  {
    name: 'what came back goes again',
    file: SHORTENING,
    from: 'facts.isWholeAgain || (',
    to: '(',
    test: CORE,
  },
  {
    name: 'batches near the window',
    file: SHORTENING,
    from: '!fill.hasRoom || isCompaction',
    to: 'isCompaction',
    test: CORE,
  },
  {
    name: 'compactions are shortened',
    file: SHORTENING,
    from: '(isCompaction && !fill.mayNotFit)',
    to: 'false',
    test: CORE,
  },
  {
    name: 'a wrong proof counts',
    file: POSSESSION,
    from: 'if (proof !== textProof(nonce, asked.role, asked.text)) return undefined;',
    to: '',
    test: PROXY,
    only: 'law 2',
  },
  {
    name: 'a proof counts twice',
    file: POSSESSION,
    from: ' || proven.has(digest)',
    to: '',
    test: PROXY,
    only: 'answers twice',
  },
  {
    name: 'a nonce is used again',
    file: POSSESSION,
    from: 'const nonce = randomBytes(NONCE_BYTES);',
    to: 'const nonce = new Uint8Array(NONCE_BYTES);',
    test: PROXY,
    only: 'another question',
  },
  {
    name: 'secrets are kept',
    file: 'src/proxy/output-keeper.ts',
    from: 'maskSecrets(text).masked > 0',
    to: 'maskSecrets(text).masked < 0',
    test: PROXY,
    only: 'R26',
  },
  {
    name: 'a refusal is forgotten',
    file: SHORTENER,
    from: "kind === 'real' && found.has(refusal)",
    to: 'false',
    test: PROXY,
    only: 'refused',
  },
  {
    name: 'the history at the provider is edited',
    file: 'src/core/plan.ts',
    from: "if (facts.hasProviderState) return 'bypassed_provider_state';",
    to: '',
    test: PROXY,
    only: 'bypassed_provider_state',
  },
  {
    name: 'no proof is needed for a new exchange',
    file: SHORTENING,
    from: 'wanted.omissions.filter((omission) => isProven(omission, proven))',
    to: 'wanted.omissions',
    test: OMISSIONS_PROXY,
    only: 'holds nothing',
  },
  {
    name: 'no proof is needed for an exchange that was out',
    file: SHORTENING,
    from: 'wanted.omitted.filter((omission) => isProven(omission, proven))',
    to: 'wanted.omitted',
    test: OMISSIONS_PROXY,
    only: 'forgotten',
  },
  {
    name: 'half a proof is enough',
    file: OMISSIONS,
    from: 'texts.every(',
    to: 'texts.some(',
    test: OMISSIONS_CORE,
  },
  {
    name: 'an exchange goes though nothing was recalled',
    file: 'src/core/plan.ts',
    from: "isCovered ? undefined : 'bypassed_empty_recall'",
    to: 'undefined',
    test: OMISSIONS_CORE,
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
  {
    name: 'a batch is not remembered',
    file: SHORTENER,
    from: 'if (chosen.batch.length + chosen.omissions.length > 0) {',
    to: 'if (chosen.batch.length + chosen.omissions.length < 0) {',
    test: PROXY,
    only: 'law 6',
  },
];
