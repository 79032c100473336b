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
  request: {
    added: (memories: number) =>
      memories === 0
        ? 'added a block of memories'
        : `added ${count(memories, 'memory', 'memories')}`,
    leftOut: (items: number) => `left out ${count(items, 'old item')}`,
    cheaper: (share: number) => `cost ${percent(share)} less than direct`,
    dearer: (share: number) => `cost ${percent(share)} more than direct`,
    same: 'cost the same as direct',
    unchanged: 'went out as it came',
    /** `Added 4 memories, left out 5 old items, and cost 21 % less than direct.` */
    sentence: (parts: readonly string[]) => {
      const [last = '', ...rest] = parts.toReversed();
      const text = rest.length === 0 ? last : `${rest.toReversed().join(', ')}, and ${last}`;
      return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
    },
    when: (date: string, time: string) => `${date}, ${time}`,
    request: 'Request',
    answered: (end: string, status: number) => `${end} Status ${status}.`,
    ofConversation: (number: number, of: number) => `Request ${number} of ${of}`,
    conversation: (key: string) => `Conversation ${key.slice(0, 8)}`,
    tokensIn: 'Tokens in, estimated',
    changedBy: (out: number, added: number) => `${whole(out)} left out, ${whole(added)} added`,
    tokensOut: 'Tokens out',
    timing: (first: string, all: string) => `first byte after ${first}, all after ${all}`,
    cache: 'Provider’s cache',
    cacheRead: 'read',
    cacheParts: (read: number, written: number, fresh: number) =>
      `${whole(read)} read, ${whole(written)} written, ${whole(fresh)} new`,
    price: 'Price of the input',
    directAbout: (direct: number) => `direct about ${whole(direct)}`,
    reckoned: 'How it was reckoned',
    notCounted: 'the provider told no counts',
    client: 'Client',
    model: 'Model',
    noModel: '(none named)',
    project: 'Project',
    memory: 'Memory',
    shortening: 'Shortening',
    why: 'Why?',
    state: 'State:',
    mode: (mode: string) => `mode ${mode}`,
    memoryStates: {
      recalled: 'Recalled',
      empty: 'Nothing to say',
      off: 'Off',
      write_only: 'Only kept',
    } as Readonly<Record<string, string>>,
    shorteningStates: {
      elided_tool_output: 'Old outputs left out',
      committed: 'Old exchanges left out',
      not_needed: 'Nothing to leave out',
      shadow_only: 'Measured only',
      not_applicable: 'Off',
    } as Readonly<Record<string, string>>,
    bypassed: 'Sent whole',
    degraded: 'Could not help',
    both: 'What the client sent, and what went out',
    keySame: (tokens: number) => `unchanged ${whole(tokens)}`,
    keyOut: (tokens: number, stubs: number) =>
      stubs === 0
        ? `left out ${whole(tokens)}`
        : `left out ${whole(tokens)}, for ${whole(stubs)} of stubs`,
    keyAdded: (tokens: number) => `added ${whole(tokens)}`,
    clientSent: 'Client sent',
    wentOut: 'Went out',
    wentOutLong: 'Went out to the provider',
    tokens: (tokens: number) => `${whole(tokens)} tokens`,
    mapSent: 'The request in order: hollow parts were left out',
    mapWent: 'The request as it went out: the green parts were added',
    head: 'System prompt, tools and settings',
    items: (number: number) => count(number, 'item'),
    headAnd: (number: number) => `System prompt, tools, and ${count(number, 'item')}`,
    kinds: {
      prompt: 'You',
      user: 'A message of the user’s side',
      assistant: 'The assistant',
      system: 'An instruction',
      tool: 'An output',
      other: 'An item',
    },
    noBodies: 'svc keeps no bodies, so it cannot show this text. To see whole requests here, set',
    keepSetting: 'proxy.keepRequests',
    asItCame: 'Went out as it came, byte for byte.',
    outputOf: 'Output of',
    someTool: 'a tool',
    stub: 'A stub stands for it',
    stubs: (number: number) => `${count(number, 'stub')} stand for them`,
    olderOutputs: (number: number) => `${count(number, 'older output')} left out`,
    exchange: (items: number) => `${count(items, 'item')} of whole exchanges left out`,
    nothingStands: 'Nothing stands for them; memory holds what they said.',
    showText: 'Show what was left out',
    leftOutLabel: (number: string) => `Item ${number}, left out`,
    addedLabel: 'Added by svc',
    blockTitle: 'Added from memory',
    blockGone: 'The text of this block was forgotten since.',
    lines: (number: number) => count(number, 'line'),
    otherLines: (number: number) => `Show the other ${count(number, 'line')}`,
    cut: 'The text is longer; the terminal shows all of it: svc memory get',
    wholeTitle: 'The whole request',
    wholeNote:
      'Kept in memory only, because proxy.keepRequests asks for it. Written with line breaks for reading.',
    priceTitle: 'How the price was reckoned',
    priceUnit: 'in input tokens at full price',
    withSvc: 'With svc',
    direct: 'Direct',
    priceHeads: ['Input', 'Tokens', 'With svc', 'Direct'],
    fresh: 'New, at full price',
    read: 'Read from the cache',
    written: 'Written to the cache',
    together: 'Together',
    priceNote:
      '“With svc” is the provider’s own count. “Direct” is a model: the cache works for it as it did here, and no batch made it write the prompt anew.',
    timeTitle: 'Where the time went',
    timeShare: (own: string, all: string) => `svc took ${own} of ${all}`,
    steps: {
      body: 'The body came in',
      read: 'It was read',
      recall: 'Memory was asked',
      plan: 'The plan was made',
      head: 'The provider’s first byte',
      relay: 'The rest of its answer',
    } as Readonly<Record<string, string>>,
    stepsOwn: (text: string) => `Inside svc: ${text}`,
    reread: (outputs: number, files: number) =>
      `${count(outputs, 'left-out output')} and ${count(files, 'file')} were read again`,
    ofMemory: (ref: string) => `Memory ${ref}`,
    from: (day: string, client: string, space: string) => `${day}, ${client}, ${space}`,
    session: 'its session',
  },
  requests: {
    title: (rows: number, hasMore: boolean) =>
      hasMore
        ? `The newest ${count(rows, 'request')} that fit.`
        : `${count(rows, 'request')} ${rows === 1 ? 'fits' : 'fit'}.`,
    none: 'No request of the log fits. It keeps 90 days.',
    scope: 'Scope',
    all: 'All requests',
    of: {
      conversation: (value: string) => `conversation ${value.slice(0, 8)}`,
      space: (value: string) => `project ${value}`,
      client: (value: string) => `client ${value}`,
      model: (value: string) => `model ${value}`,
      day: (value: string) => value,
    },
    heads: ['Time', 'Project', 'Client and model', 'What memory did', 'In → went out', 'Cost'],
  },
};
