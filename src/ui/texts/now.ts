import { short } from '../../core/meter/figures.ts';
import { count, percent, span, whole } from '../format.ts';

export const NOW = {
  headline: (share: number | undefined, requests: number) => {
    if (requests === 0) return 'Nothing came through svc today.';
    const rounded = Math.round((share ?? 0) * 100);
    if (share === undefined) return `Today svc passed on ${count(requests, 'request')}.`;
    if (rounded === 0) return 'Today your input cost the same as direct.';
    return `Today svc ${rounded > 0 ? 'saved' : 'added'} ${percent(Math.abs(share))} of what direct costs.`;
  },
  open: (open: number) =>
    open === 0
      ? 'No request is being answered.'
      : open === 1
        ? '1 request is being answered.'
        : `${whole(open)} requests are being answered.`,
  live: (ago: number | undefined) =>
    ago === undefined
      ? 'Live: new events appear here by themselves.'
      : `Live: the last event came ${span(ago)} ago.`,
  started: (time: string) => `The proxy started at ${time}. The log has earlier requests.`,
  inFlight: 'In flight',
  waits: 'waits for the provider’s first byte',
  reads: 'is read by svc',
  answers: (status: number) => `answers, status ${status}`,
  conversations: 'Conversations',
  scope: (conversations: number) =>
    `The last ${count(conversations, 'conversation')}. Cost is compared with direct.`,
  none: 'The log has no request of a conversation yet.',
  today: {
    figures: 'Today in four figures',
    recalled: 'Recalled',
    recalledOf: (recalled: number, asked: number) => `${whole(recalled)} of ${whole(asked)}`,
    prompts: (requests: number, degraded: number) =>
      `requests of conversations carried memories, ${count(requests, 'request')} in all` +
      (degraded === 0 ? '' : `; it failed ${count(degraded, 'time')}`),
    saved: 'Saved',
    more: 'Added',
    of: (paid: number, direct: number) =>
      `${short(paid)} tokens at full price, about ${short(direct)} direct`,
    noCounts: 'no provider sent token counts',
    misses: 'Cache misses',
    missed: (tokens: number, cause: string | null) =>
      cause === null
        ? 'The cache served what it could'
        : `${short(tokens)} tokens charged again. Most: ${cause.replaceAll('`', '')}`,
    culprits: 'Why the cache missed, in seven days',
    culprit: (cause: string, times: number, tokens: number) =>
      `${cause.replaceAll('`', '')}: ${count(times, 'time')}, ${short(tokens)} tokens`,
    allMissed: 'The requests that missed it',
    quota: 'Plan left',
    left: (parts: readonly string[]) => parts.join('; '),
    window: (name: string, left: string, reset: string | null) =>
      reset === null
        ? `${name}: ${left}`
        : `${name}: ${left}, resets ${reset.replace(/^Today/, 'today')}`,
    noQuota: 'No answer to a login has stated it',
  },
  start: 'Start a client with: svc run claude',
  heads: [
    '',
    'Project and first prompt',
    'Client and model',
    'Requests',
    'Recall',
    'Left out',
    'Cache',
    'Cost',
    'Last',
  ],
  labels: {
    requests: 'Requests',
    recall: 'Recall',
    out: 'Left out',
    cache: 'Cache',
    cost: 'Cost',
    last: 'Last',
  },
  noProject: '(no project)',
  noPrompt: 'Its first prompt is not in the memory.',
  requests: 'Requests',
  requestHeads: {
    time: 'Time',
    whose: 'Project, client and model',
    what: 'What memory did',
    tokens: 'In → sent',
    cache: 'Cache',
    took: 'Took',
  },
  allRequests: (number: number) => `All ${count(number, 'request')}`,
  recalled: 'Recalled',
  memories: (number: number) => count(number, 'memory', 'memories'),
  carried: 'for earlier prompts',
  staysOut: (number: number) => `${count(number, 'item')} left out`,
  unchanged: 'sent unchanged',
  cost: 'Cost so far',
  costText: (paid: number, direct: number) =>
    `${short(paid)} with svc, about ${short(direct)} direct`,
  kept: (tokens: number, share: number) => `${short(tokens)} saved (${percent(share)})`,
  dearer: (tokens: number, share: number) => `${short(tokens)} more (${percent(share)})`,
  curve: (requests: number, paid: number, direct: number) =>
    `Cost over ${count(requests, 'request')}: with svc ${short(paid)}, direct about ${short(direct)}`,
  noPrice: 'The provider sent no token counts, so the price is unknown.',
  batches: 'Batches',
  batch: (time: string, items: number, tokens: number) =>
    `${time}, ${count(items, 'item')}, ${short(tokens)}`,
  noBatch: 'Nothing is left out.',
  blocks: 'Blocks',
  block: (time: string, memories: number) => `${time}, ${count(memories, 'memory', 'memories')}`,
  blockTokens: (tokens: number) => `${whole(tokens)} tokens`,
  noBlock: 'No memory was added.',
  badges: {
    degraded: 'Memory did not help once',
    failed: 'An answer failed',
  },
  request: 'Request at',
};
