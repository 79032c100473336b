/** The composition root of `svc statusline`: a store that is read in this very thread. */
export { sessionFacts } from '../adapters/state/recent-requests.ts';
