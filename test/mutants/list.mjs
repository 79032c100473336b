import { EXCHANGE_MUTANTS } from './exchanges.mjs';

/**
 * Safety checks of shortening, each switched off by one change of the source, and the test file that
 * must then fail. `npm run mutants` (or `npm run mutants -- NAME`) runs them; not part of `npm test`.
 */

import { BOUND } from './bound.mjs';
import { LOGINS } from './logins.mjs';
import { DATABASE } from './database.mjs';
import { LIMITS } from './limits.mjs';
import { NETWORK } from './network.mjs';
import { NODES } from './nodes.mjs';
import { ORIGINS } from './origins.mjs';
import { PAGE } from './page.mjs';
import { PROVENANCE } from './provenance.mjs';
import { STATE } from './state.mjs';
import { STORE } from './store.mjs';
import { UNASKED } from './unasked.mjs';
import { QUOTES } from './quotes.mjs';
import { RECEIPTS } from './receipts.mjs';
import { TENANTS } from './tenants.mjs';
import { THOUGHT_MUTANTS } from './thoughts.mjs';

const CORE = 'test/core/shortening.prop.test.ts';
const PROXY = 'test/proxy/shortening.test.ts';
const REMOVAL = 'src/core/shortening/removal.ts';
const DECIDE = 'src/core/shortening/removal.ts';
const CONTINUITY = 'src/core/plan/continuity.ts';
const POSSESSION = 'src/proxy/possession.ts';
const SHORTENER = 'src/proxy/shortener.ts';
const REDACTION = 'test/core/redaction.test.ts';
const RULE = 'test/core/decide.test.ts';

/** `from` stands in the file exactly once. */
export const MUTANTS = [
  ...BOUND,
  ...DATABASE,
  ...LIMITS,
  ...THOUGHT_MUTANTS,
  ...NETWORK,
  ...NODES,
  ...ORIGINS,
  ...PAGE,
  ...PROVENANCE,
  ...STATE,
  ...UNASKED,
  ...TENANTS,
  ...QUOTES,
  ...RECEIPTS,
  {
    name: 'a brief alone permits exchanges to leave',
    file: REMOVAL,
    from: '({ item, block }) => item === newest && tellsExchanges(block)',
    to: '({ item }) => item === newest',
    test: 'test/core/recall-obstacle.test.ts',
  },
  {
    name: 'a block that quotes a forgotten exchange stays placed',
    file: 'src/adapters/store/exchange-search.ts',
    from: 'records: rows.map((row) => row.ref),',
    to: 'records: [ref],',
    test: 'test/adapters/store-agent.test.ts',
  },
  {
    name: 'a stub replaces what stands behind the output too',
    file: 'src/core/shortening/outputs.ts',
    from: 'said, said.length === whole.length)',
    to: 'said, true)',
    test: PROXY,
    only: 'byte for byte',
  },
  {
    name: 'a person’s words in a reminder count as the tool’s',
    file: 'src/core/conversation/human-text.ts',
    from: 'const typed = typedFrameStart(text);',
    to: 'const typed = -1;',
    test: 'test/core/outputs.test.ts',
  },
  {
    name: 'a living cache counts as cold',
    file: 'src/proxy/cache-watch.ts',
    from: 'isCold: idleMs > lifetimeMs',
    to: 'isCold: idleMs > 300_000',
    test: PROXY,
    only: 'a cache that lives',
  },
  {
    name: 'a refusal is passed on although only the change was refused',
    file: 'src/proxy/forward.ts',
    from: '[400, 403, 413, 422, 451]',
    to: '[403, 413, 422, 451]',
    test: 'test/proxy/replayed-blocks.test.ts',
    only: 'R17',
  },
  {
    name: 'a long lifetime stands behind a short one',
    file: 'src/core/shortening/long-cache.ts',
    from: "if (lifetimeMs(said['ttl']) < HOUR_MS) return edits;",
    to: '',
    test: 'test/core/long-cache.prop.test.ts',
  },
  {
    name: 'cache marks change unasked',
    file: 'src/proxy/cache-watch.ts',
    from: "call.settings.cacheTtl === 'auto' && call.modes",
    to: 'call.modes',
    test: 'test/proxy/long-cache.test.ts',
  },
  {
    name: 'small outputs go too',
    file: REMOVAL,
    from: 'output.tokens >= tokensMin &&',
    to: '',
    test: CORE,
  },
  {
    name: 'what may not be stored goes too',
    file: REMOVAL,
    from: 'output.isStorable && ',
    to: '',
    test: CORE,
  },
  {
    name: 'what was read again goes as often as one likes',
    file: REMOVAL,
    from: 'timesRead <= LEAVES_AGAIN_MAX',
    to: 'timesRead >= 0',
    test: CORE,
  },
  {
    name: 'the copy of a copy counts as another text',
    file: 'src/core/shortening/outputs.ts',
    from: 'if (first !== own) this.#origins.set(own, first);',
    to: '',
    test: CORE,
  },
  {
    name: 'what a client’s stub refers to goes',
    file: REMOVAL,
    from: 'return !isClients && timesRead',
    to: 'return timesRead',
    test: CORE,
  },
  {
    name: 'what a client’s stub refers to stays out',
    file: REMOVAL,
    from: '(request.isBound ? staysOut : mayLeave)',
    to: '(() => true)',
    test: CORE,
  },
  {
    name: 'the last rounds go',
    file: REMOVAL,
    from: 'return Math.min(items.length - 1, ...kept);',
    to: 'return items.length + kept.length;',
    test: CORE,
  },
  {
    name: 'the outputs of sub-agents and file lists go',
    file: REMOVAL,
    from: ' && !isKeptTool(tool)',
    to: ' && tool !== undefined',
    test: CORE,
  },
  {
    name: 'the provider clears what is not proven',
    file: 'src/proxy/shortener.ts',
    from: 'missing.length === 0 ? edit : undefined',
    to: 'missing.length >= 0 ? edit : undefined',
    test: 'test/proxy/bound-shortening.test.ts',
  },
  {
    name: 'nothing needs to be stored',
    file: REMOVAL,
    from: 'old.filter(({ digest }) => facts.isStored(digest))',
    to: 'old',
    test: CORE,
  },
  {
    name: 'no proof is needed for a batch',
    file: REMOVAL,
    from: 'removal.batch.filter(isHeld)',
    to: 'removal.batch',
    test: CORE,
  },
  {
    name: 'no proof is needed for what was out',
    file: REMOVAL,
    from: ': removal.repeated.filter(isHeld)',
    to: ': removal.repeated',
    test: PROXY,
    only: 'lost',
  },
  {
    name: 'no price is asked',
    file: DECIDE,
    from: 'return rent >= cost;',
    to: 'return rent >= 0 || cost < 0;',
    test: RULE,
  },
  {
    name: 'a bound conversation leaves out something new',
    file: DECIDE,
    from: "return facts.isBound ? 'protected' : 'leaves';",
    to: "return 'leaves';",
    test: RULE,
  },
  {
    name: 'a stub of a bound conversation needs a proof',
    file: REMOVAL,
    from: 'facts.isBound ? removal.repeated : removal.repeated.filter(isHeld)',
    to: 'removal.repeated.filter(isHeld)',
    test: CORE,
  },
  {
    name: 'an unknown price of a cache read counts as known',
    file: DECIDE,
    from: 'if (!prices.isKnown) return false;',
    to: '',
    test: RULE,
  },
  {
    name: 'batches near the window',
    file: DECIDE,
    from: 'messages * prices.tokenRatio > ROOM_SHARE_MAX * room',
    to: 'false',
    test: RULE,
  },
  {
    name: 'a compaction leaves out something new',
    file: REMOVAL,
    from: "if (!takesNew) return { ...again, otherwise: 'side_call' };",
    to: '',
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
    file: 'src/core/redaction/redaction.ts',
    from: 'maskSecrets(text).masked > 0',
    to: 'maskSecrets(text).masked < 0',
    test: PROXY,
    only: 'R26',
  },
  {
    name: 'a refusal is forgotten',
    file: SHORTENER,
    from: 'isRefused: isRefused(refusals,',
    to: 'isRefused: !isRefused(refusals,',
    test: PROXY,
    only: 'refused',
  },
  {
    name: 'the history at the provider is edited',
    file: CONTINUITY,
    from: "if (facts.hasProviderState) return 'provider_state';",
    to: '',
    test: PROXY,
    only: 'bypassed_provider_state',
  },
  ...EXCHANGE_MUTANTS,
  {
    name: 'a batch is not remembered',
    file: SHORTENER,
    from: 'const isRecorded = await this.#dependencies.ledger.commit(recorded);',
    to: 'const isRecorded = true;',
    test: PROXY,
    only: 'law 6',
  },
  ...LOGINS,
  ...STORE,
  {
    name: 'secrets in escaped text stay readable',
    file: 'src/core/redaction/redaction.ts',
    from: 'decodeEscapes(text)',
    to: "decodeEscapes('').view === '' ? { view: text, toText: (index: number) => index } : decodeEscapes(text)",
    test: REDACTION,
  },
  {
    name: 'a key of the configuration is kept',
    file: 'src/cli/compose.ts',
    from: '  rememberOwnSecrets(ownSecretsOf(settings));\n',
    to: '',
    test: 'test/cli/compose.test.ts',
  },
  {
    name: 'passwords in commands stay readable',
    file: 'src/core/redaction/secret-rules.ts',
    from: '  ...COMMAND_RULES,\n',
    to: '',
    test: REDACTION,
  },
  {
    name: 'secrets of headers and addresses stay readable',
    file: 'src/core/redaction/secret-rules.ts',
    from: '  ...WIRE_RULES,\n',
    to: '',
    test: REDACTION,
  },
  {
    name: 'orders of a few words are memories',
    file: 'src/core/memory/captures.ts',
    from: 'isOrder(text) ?',
    to: 'isFiller(text) ?',
    test: 'test/core/captures.test.ts',
  },
  {
    name: 'a question that got no answer is recalled alone',
    file: 'src/adapters/store/search.ts',
    from: 'if (answer === undefined || answered === undefined) return [];',
    to: 'if (answer === undefined || answered === undefined) return [{ id, text }];',
    test: 'test/adapters/store-questions.test.ts',
  },
  {
    name: 'an order may hold a rule',
    file: 'src/core/memory/orders.ts',
    from: '  if (SAYS_SOMETHING.test(text) || SIZE.test(text)) return false;\n',
    to: '',
    test: 'test/core/captures.test.ts',
  },
  {
    name: 'a card needs no check digit',
    file: 'src/core/redaction/spoken-secrets.ts',
    from: 'return sum % 10 === 0;',
    to: 'return true;',
    test: REDACTION,
  },
  {
    name: 'a template counts as a secret',
    file: 'src/core/redaction/secret-likeness.ts',
    from: 'return PLACEHOLDER_FORM.test(value) || beginsWithWord(PLACEHOLDER_WORD, value) || isMadeUp(value);',
    to: 'return value === PLACEHOLDER_FORM.source;',
    test: REDACTION,
  },
];
