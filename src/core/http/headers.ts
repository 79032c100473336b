/**
 * Header lists as the wire has them: name, value, name, value. Order, case and repeats are kept,
 * because a proxy that folds them into an object has already lost something.
 */
export type RawHeaders = readonly string[];
