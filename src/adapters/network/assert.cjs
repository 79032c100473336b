/**
 * Replaces `node:assert` in the bundles. For a failed assertion without a message, Node reads and parses the source file
 * to write one. For a bundle of megabytes that blocks the event loop for seconds, and a provider can cause it by sending
 * a status below 100.
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
