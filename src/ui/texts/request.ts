import { count, percent, whole } from '../format.ts';

/** The words of one request, and of a list of requests. */

export const REQUEST = {
  added: (memories: number) =>
    memories === 0 ? 'added a block of memories' : `added ${count(memories, 'memory', 'memories')}`,
  leftOut: (items: number) => `left out ${count(items, 'old item')}`,
  cheaper: (share: number) => `cost ${percent(share)} less than direct`,
  dearer: (share: number) => `cost ${percent(share)} more than direct`,
  same: 'cost the same as direct',
  unchanged: 'was sent unchanged',
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
  notCounted: 'the provider sent no token counts',
  client: 'Client',
  model: 'Model',
  noModel: '(none named)',
  project: 'Project',
  memory: 'Memory',
  shortening: 'Shortening',
  thinking: 'Thinking',
  why: 'Why?',
  state: 'State:',
  mode: (mode: string) => `mode ${mode}`,
  memoryStates: {
    recalled: 'Recalled',
    empty: 'Nothing relevant',
    off: 'Off',
    write_only: 'Stored only',
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
  both: 'As the client sent it, and as svc sent it',
  keySame: (tokens: number) => `unchanged ${whole(tokens)}`,
  keyOut: (tokens: number, stubs: number) =>
    stubs === 0
      ? `left out ${whole(tokens)}`
      : `left out ${whole(tokens)}, replaced by ${whole(stubs)} of stubs`,
  keyAdded: (tokens: number) => `added ${whole(tokens)}`,
  clientSent: 'Client sent',
  wentOut: 'svc sent',
  wentOutLong: 'svc sent to the provider',
  tokens: (tokens: number) => `${whole(tokens)} tokens`,
  mapSent: 'The request as the client sent it: hollow parts were left out',
  mapWent: 'The request as svc sent it: the green parts were added',
  head: 'System prompt, tools and settings',
  items: (number: number) => count(number, 'item'),
  headAnd: (number: number) => `System prompt, tools, and ${count(number, 'item')}`,
  kinds: {
    prompt: 'You',
    user: 'A message with the role user',
    assistant: 'The assistant',
    system: 'An instruction',
    tool: 'An output',
    other: 'An item',
  },
  noBodies: 'svc stores no bodies, so it cannot show this text. To see whole requests here, set',
  keepSetting: 'proxy.keepRequests',
  asItCame: 'svc sent it unchanged, byte for byte.',
  outputOf: 'Output of',
  someTool: 'a tool',
  stub: 'A stub replaces it',
  stubs: (number: number) => `${count(number, 'stub')} replace them`,
  olderOutputs: (number: number) => `${count(number, 'older output')} left out`,
  exchange: (items: number) => `${count(items, 'item')} of whole exchanges left out`,
  nothingStands: 'No stub replaces them; the memory holds their text.',
  showText: 'Show what was left out',
  leftOutLabel: (number: string) => `Item ${number}, left out`,
  addedLabel: 'Added by svc',
  blockTitle: 'Added from memory',
  blockGone: 'The text of this block has been forgotten.',
  otherLines: (number: number) => `Show the other ${count(number, 'line')}`,
  cut: 'The text is longer. A terminal shows all of it: svc memory get',
  wholeTitle: 'The whole request',
  wholeNote:
    'The proxy keeps it in RAM only, because proxy.keepRequests is set. Line breaks were added for reading.',
  priceTitle: 'How the price is computed',
  priceUnit: 'in input tokens at full price',
  withSvc: 'With svc',
  direct: 'Direct',
  priceHeads: { input: 'Input', rate: 'Rate', tokens: 'Tokens', cost: 'Price' },
  rate: (rate: number) => `× ${rate}`,
  fresh: 'New, at full price',
  read: 'Read from the cache',
  written: 'Written to the cache',
  writtenHour: 'Written to the cache for an hour',
  directModel: 'Direct, by the model',
  together: 'Total',
  priceNote:
    '“With svc” is the provider’s own count. “Direct” is a model: it assumes the same cache and no shortening.',
  timeTitle: 'Where the time went',
  timeShare: (own: string, all: string) => `svc took ${own} of ${all}`,
  steps: {
    body: 'svc received the body',
    read: 'svc parsed it',
    recall: 'Recall',
    plan: 'Planning',
    head: 'The provider’s first byte',
    relay: 'The rest of its answer',
  } as Readonly<Record<string, string>>,
  stepsOwn: (text: string) => `Inside svc: ${text}`,
  reread: (outputs: number) => `The model read ${count(outputs, 'left-out output')} again`,
  ofMemory: (ref: string) => `Memory ${ref}`,
  from: (day: string, client: string, space: string) => `${day}, ${client}, ${space}`,
  session: 'its session',
};

export const REQUESTS = {
  title: (rows: number, hasMore: boolean) =>
    hasMore
      ? `The newest ${count(rows, 'request')} that match.`
      : `${count(rows, 'request')} ${rows === 1 ? 'matches' : 'match'}.`,
  none: 'No request in the log matches. The log keeps 90 days.',
  all: 'All requests',
  of: {
    conversation: (value: string) => `conversation ${value.slice(0, 8)}`,
    space: (value: string) => `project ${value}`,
    client: (value: string) => `client ${value}`,
    model: (value: string) => `model ${value}`,
    day: (value: string) => value,
  },
};
