/**
 * Stands in for `node:assert` in the bundles. Node words an assertion without a message by reading and parsing the
 * file that holds it: for a bundle of megabytes that stopped all clients for seconds, when a provider sent a status
 * below 100.
 */
class AssertionError extends Error {
  constructor(message) {
    super(message ?? 'An assertion of a library failed.');
    this.name = 'AssertionError';
    this.code = 'ERR_ASSERTION';
  }
}

function assert(value, message) {
  if (!value) throw message instanceof Error ? message : new AssertionError(message);
}

module.exports = Object.assign(assert, {
  AssertionError,
  ok: assert,
  strict: assert,
  equal: (one, other, message) => assert(Object.is(one, other), message),
  strictEqual: (one, other, message) => assert(Object.is(one, other), message),
  notStrictEqual: (one, other, message) => assert(!Object.is(one, other), message),
  fail: (message) => assert(false, message),
});
