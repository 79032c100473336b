/** Bounds of the memory API, the same on both sides of the wire. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bounds on the body of a request in bytes, by operation. */
export const REQUEST_BYTES_MAX = {
  recall: 256 * KIB,
  capture: 8 * MIB,
  retrieve: 64 * KIB,
  purge: 64 * KIB,
} as const;

/** Bound on an answer's body in bytes. A longer answer is discarded unread. */
export const ANSWER_BYTES_MAX = {
  whoami: MIB,
  recall: MIB,
  capture: MIB,
  retrieve: 8 * MIB,
  items: 8 * MIB,
  purge: MIB,
  error: 64 * KIB,
} as const;

/** Bound on candidates of one call: proving 512 records of 2 kB takes the service 20 ms. */
export const CANDIDATES_MAX = 512;
export const EXCLUDED_MAX = 256;
export const CAPTURE_ITEMS_MAX = 64;
export const RETRIEVE_REFS_MAX = 32;
export const PURGE_DIGESTS_MAX = 512;
export const PAGE_MAX = 100;
/** Bound on the text that a list searches for, in UTF-16 units. */
export const WORDS_CHARS_MAX = 1000;
export const QUERY_CHARS_MAX = 8192;
export const RECENT_CHARS_MAX = 2048;
/** Bound on an item's text in UTF-16 units. `retrieve` returns the whole record. */
export const ITEM_CHARS_MAX = 16_384;
/** Bounds on the names in a record's description, in UTF-16 units. */
export const SESSION_CHARS_MAX = 128;
export const CLIENT_CHARS_MAX = 64;
export const FINGERPRINT_CHARS_MAX = 128;
export const BRANCH_CHARS_MAX = 256;
export const RECALL_TOKENS_MAX = 8192;
export const RECALL_ITEMS_MAX = 50;
/** Bound on the earlier spaces of a project. */
export const OLDER_SPACES_MAX = 16;
/** Bound on quotes from one exchange. */
export const QUOTES_MAX = 64;

/** Largest commit sequence: a thousand commits a second for 34 years. */
export const COMMIT_SEQUENCE_MAX = 2 ** 40;

/** Bounds and default of the header x-svc-deadline-ms, in milliseconds. */
export const DEADLINE_MS = { min: 10, max: 10_000, fallback: 2000 } as const;
