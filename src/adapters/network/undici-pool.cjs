const { setFlagsFromString } = require('node:v8');

/**
 * undici parses answers with WebAssembly. V8's own budget has it optimized after one or two answers: 50 to 100 ms of CPU
 * beside the first requests of a process, half of their time where there is one core, and up to 40 MB, of which some 10
 * stay. It saves 0.05 us for each event of a stream. With this budget, nearly the largest that V8 takes, it comes later.
 */
const PARSER_BUDGET = 2_000_000_000;

/** By the major version of V8: Node 20; Node 22, 24 and 26. */
const OWN_BUDGETS = { 11: 1_800_000, 12: 13_000_000, 13: 13_000_000, 14: 13_000_000 };

/**
 * V8 keeps the code of a module once for the same bytes, so undici gets this one as long as it is held. Each flag is its
 * own again at once: while one is not, V8 refuses all code that was compiled before, Node's own too. Undefined where the
 * processor has no SIMD, for which undici has another parser.
 */
function parserWithBudget() {
  const ownBudget = OWN_BUDGETS[Number.parseInt(process.versions.v8, 10)];
  if (ownBudget === undefined) return undefined;
  setBudget(PARSER_BUDGET);
  try {
    return new WebAssembly.Module(
      require('../../../node_modules/undici/lib/llhttp/llhttp_simd-wasm.js'),
    );
  } catch {
    return undefined;
  } finally {
    setBudget(ownBudget);
  }
}

function setBudget(budget) {
  setFlagsFromString(`--wasm-tiering-budget=${budget}`);
}

// What svc uses of undici. Its main file also loads fetch, caches, mocks and WebSocket, which costs
// about 45 ms of every start (measured: 280 ms against 235 ms to the first served request).
// Relative paths: the bundler sends the bare name here.
module.exports = {
  Pool: require('../../../node_modules/undici/lib/dispatcher/pool.js'),
  buildConnector: require('../../../node_modules/undici/lib/core/connect.js'),
  errors: require('../../../node_modules/undici/lib/core/errors.js'),
  parser: parserWithBudget(),
};
