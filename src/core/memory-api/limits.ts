/** Bounds of the memory API, which client and service both use. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bounds on the body of a request in bytes, by operation. */
export const REQUEST_BYTES_MAX = {
  recall: 256 * KIB,
  capture: 8 * MIB,
  retrieve: 64 * KIB,
  purge: 64 * KIB,
} as const;

/** Bounds on the body of an answer in bytes, by operation. A client discards a longer answer. */
export const ANSWER_BYTES_MAX = {
  whoami: MIB,
  recall: MIB,
  capture: MIB,
  retrieve: 8 * MIB,
  items: 8 * MIB,
  purge: MIB,
  error: 64 * KIB,
} as const;

/** Bound on the records that one call may ask the service to prove. For 512 records of 2 kB that takes 20 ms. */
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
/** Bound on a text in a recall or a list, in UTF-16 units. The operation `retrieve` returns the whole text. */
export const ITEM_CHARS_MAX = 16_384;
/** Bounds on the names that are stored with a record, in UTF-16 units. */
export const SESSION_CHARS_MAX = 128;
export const CLIENT_CHARS_MAX = 64;
export const FINGERPRINT_CHARS_MAX = 128;
export const BRANCH_CHARS_MAX = 256;
export const RECALL_TOKENS_MAX = 8192;
export const RECALL_ITEMS_MAX = 50;
/** Bound on the former spaces of a project, which a recall searches too. */
export const OLDER_SPACES_MAX = 16;
/** Most quotes in one recalled exchange, and most record references in one recalled exchange or session. */
export const QUOTES_MAX = 64;

/** Largest commit sequence: a thousand commits a second for 34 years. */
export const COMMIT_SEQUENCE_MAX = 2 ** 40;

/** Bounds and default of the header x-svc-deadline-ms, in milliseconds. */
export const DEADLINE_MS = { min: 10, max: 10_000, fallback: 2000 } as const;
