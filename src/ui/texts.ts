import { count, percent, short, signedPercent, span, whole } from './format.ts';

/** Every word of the page, in one file. Plain sentences; a headline answers the view's question. */

export const TEXTS = {
  views: {
    now: 'Now',
    request: 'Request',
    memory: 'Memory',
    savings: 'Savings',
    requests: 'Requests',
    health: 'Health',
  },
  frame: {
    views: 'Views',
    skip: 'Skip to content',
    foot: 'This page is served by svc on your machine. It asks no other host for anything.',
    proxy: (host: string) => `Proxy on ${host}`,
    version: (version: string) => `version ${version}`,
    closed: 'Closed',
    newLink: 'Get a new link in a terminal:',
    lost: 'The proxy does not answer. This page tries again every two seconds; what you see is from before.',
    path: 'Where you are',
  },
  closed: {
    noLink: {
      title: 'This page needs a link.',
      text: 'The page keeps its secret in memory only, so that nothing of it stays behind. A reload therefore ends it.',
    },
    usedLink: {
      title: 'This link is not good any more.',
      text: 'A link works once, and for a minute.',
    },
    ended: {
      title: 'This page has ended.',
      text: 'It ends after an hour without use, after 12 hours in any case, and when the proxy is started again. Nothing that svc keeps is lost.',
    },
    byHand: {
      title: 'This page is closed.',
      text: 'Its link and its cookie are good for nothing any more.',
    },
    away: {
      title: 'The proxy does not answer.',
      text: 'It may have been stopped. Look with: svc status',
    },
  },
  states: {
    loading: 'Loading …',
    retry: 'Try again',
    more: 'Show more',
    copy: 'Copy',
    copied: 'Copied',
    none: 'none',
    unknown: 'not known',
    cancel: 'Cancel',
  },
  failures: {
    late: 'svc took too long to answer.',
    unreachable: 'The proxy does not answer.',
    internal: 'svc failed on this call.',
    no_session: 'This page has ended.',
    memory_away: 'The memory cannot answer now. Look with: svc doctor',
  } as Readonly<Record<string, string>>,
  now: {
    title: (open: number) =>
      open === 0
        ? 'No request is being answered.'
        : open === 1
          ? '1 request is being answered.'
          : `${whole(open)} requests are being answered.`,
    live: (ago: number | undefined) =>
      ago === undefined
        ? 'Live: what happens appears here by itself.'
        : `Live: the last event came ${span(ago)} ago.`,
    started: (time: string) => `The proxy was started at ${time}. Its log keeps what came before.`,
    inFlight: 'In flight',
    waits: 'waits for the provider’s first byte',
    reads: 'is read by svc',
    answers: (status: number) => `answers, status ${status}`,
    conversations: 'Conversations',
    scope: (conversations: number, requests: number) =>
      `Last hour: ${conversations}, with ${count(requests, 'request')}. Cost is against direct.`,
    none: 'No request came in the last hour.',
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
    requestHeads: ['Time', 'What memory did', 'In → went out', 'Cache', 'Took'],
    allRequests: (number: number) => `All ${count(number, 'request')}`,
    recalled: 'Recalled',
    memories: (number: number) => count(number, 'memory', 'memories'),
    staysOut: (number: number) => `${count(number, 'item')} left out`,
    unchanged: 'went out as it came',
    cost: 'Cost so far',
    costText: (paid: number, direct: number) =>
      `${short(paid)} with svc, about ${short(direct)} direct`,
    kept: (tokens: number, share: number) => `${short(tokens)} kept (${percent(share)})`,
    dearer: (tokens: number, share: number) => `${short(tokens)} dearer (${percent(share)})`,
    curve: (requests: number, paid: number, direct: number) =>
      `Cost over ${count(requests, 'request')}: with svc ${short(paid)}, direct about ${short(direct)}`,
    noPrice: 'The provider told no counts, so no price is known.',
    batches: 'Batches',
    batch: (time: string, items: number, tokens: number) =>
      `${time}, ${count(items, 'item')}, ${short(tokens)}`,
    noBatch: 'Nothing is left out.',
    blocks: 'Blocks',
    block: (time: string, memories: number) => `${time}, ${count(memories, 'memory', 'memories')}`,
    blockTokens: (tokens: number) => `${whole(tokens)} tokens`,
    noBlock: 'No memory was added.',
    verdicts: {
      goes_on: 'The meter goes on: batches pay here, or were not judged yet.',
      no_more: 'This conversation costs more than it would direct. Nothing more is left out of it.',
      send_all:
        'This conversation costs more with every request than direct. All of it is sent from now on.',
    } as Readonly<Record<string, string>>,
    badges: {
      no_more: 'Shortened no further',
      send_all: 'Sent whole again',
      degraded: 'Memory did not help once',
      failed: 'An answer failed',
    },
    openRequest: (time: string) => `Request at ${time}`,
    share: signedPercent,
  },
};
