/** The composition root of `svc statusline`: a store that is read in this very thread. */
export { sessionSums as sumsOfSession } from '../adapters/store/session-sums.ts';
