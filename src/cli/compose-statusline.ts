/** What `svc statusline` needs: a store that is read on the calling thread. */
export { sessionFacts } from '../adapters/state/recent-requests.ts';
