import type { CacheMiss } from './cache-miss.ts';

/** Writes a cache miss in words. */

/**
 * Writes one sentence: the cause, from which message on, after what pause, and how many tokens were charged again.
 */
export function missText(miss: CacheMiss): string {
  const { tokens, pausedMs = 0, by } = miss;
  const message = miss.message === undefined ? '' : `, from message ${miss.message} on`;
  const place = miss.place === 'message' || miss.place === 'thinking' ? message : '';
  const paused = pausedMs === 0 ? '' : ` after a pause of ${minutesText(pausedMs)}`;
  const anyway = by === 'svc' && paused !== '' ? ' (the cache had expired anyway)' : '';
  return `${causeOf(miss)}${place}${paused}${anyway}: ${tokens} tokens were charged again.`;
}

function minutesText(ms: number): string {
  const minutes = Math.round(ms / 60_000);
  if (minutes < 120) return `${Math.max(1, minutes)} min`;
  return `${Math.round(minutes / 60)} h`;
}

/** Returns the cause in words that are the same for all misses of one kind, so that these can be counted. */
export function causeOf(miss: CacheMiss): string {
  switch (miss.by) {
    case 'svc':
      return OWN[miss.own ?? 'block'];
    case 'time':
      return 'The lifetime of the cache ran out';
    case 'provider':
      return 'The provider did not read the same bytes from its cache in time';
    case 'restart':
      return 'Not compared with the request before, because svc was restarted in between';
    case 'client':
      return clientCause(miss);
  }
}

const OWN: Readonly<Record<NonNullable<CacheMiss['own']>, string>> = {
  block: 'svc changed a recalled block',
  outputs: 'svc left out old tool outputs',
  exchanges: 'svc left out old exchanges',
  clearing: 'svc asked the provider to clear old tool outputs',
};

function clientCause({ place, change, name, isServer }: CacheMiss): string {
  switch (place ?? 'message') {
    case 'tools':
      return toolsCause(change, name, isServer);
    case 'system':
      return SYSTEM[change ?? 'edited'];
    case 'thinking':
      return 'The client changed or left out earlier thinking';
    case 'model':
      return 'The client asked another model';
    case 'marks':
      return change === 'added'
        ? 'The client added more blocks than the provider looks back from a cache mark'
        : 'The client moved its cache mark in front of what the cache had';
    case 'settings':
      if (name === 'images') return 'The client added or left out an image';
      return `The client changed the setting \`${name ?? ''}\``;
    case 'message':
      return MESSAGE[change ?? 'edited'];
  }
}

function toolsCause(
  change: CacheMiss['change'],
  name: string | undefined,
  isServer: true | undefined,
): string {
  if (isServer === true) {
    if (change === 'added') return `MCP server ${name} connected late and changed \`tools\``;
    return change === 'removed'
      ? `MCP server ${name} disconnected and changed \`tools\``
      : `MCP server ${name} changed its tools`;
  }
  const tools = name === undefined ? 'tools' : `the tool ${name}`;
  if (change === 'added') return `The client added ${tools}`;
  if (change === 'removed') return `The client left out ${tools}`;
  if (change === 'order') return 'The client sent its tools in another order';
  return `The client changed ${tools === 'tools' ? 'its tools' : tools}`;
}

const SYSTEM: Readonly<Record<NonNullable<CacheMiss['change']>, string>> = {
  date: 'A date or time in the system prompt changed',
  number: 'A number or an id in the system prompt changed',
  added: 'The client added a part to the system prompt',
  removed: 'The client left out a part of the system prompt',
  order: 'The client sent the system prompt in another order',
  edited: 'The client changed the system prompt',
};

const MESSAGE: Readonly<Record<NonNullable<CacheMiss['change']>, string>> = {
  date: 'A date or time in an earlier message changed',
  number: 'A number or an id in an earlier message changed',
  added: 'The client put a message between earlier ones',
  removed: 'The client left out an earlier message',
  order: 'The client sent earlier messages in another order',
  edited: 'The client changed an earlier message',
};
