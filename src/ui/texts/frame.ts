/** The words around every view, and those of the states that every view has. */

export const VIEWS = {
  now: 'Now',
  request: 'Request',
  memory: 'Memory',
  savings: 'Savings',
  requests: 'Requests',
  health: 'Health',
};

export const FRAME = {
  views: 'Views',
  skip: 'Skip to content',
  foot: 'This page is served by svc on your machine. It asks no other host for anything.',
  proxy: (host: string) => `Proxy on ${host}`,
  version: (version: string) => `version ${version}`,
  closed: 'Closed',
  newLink:
    'Get a new link in a terminal. Open it, or paste it into this tab to go on where you were.',
  lost: 'The proxy does not answer. This page tries again every two seconds; what you see is from before.',
  path: 'Where you are',
};

export const CLOSED = {
  noLink: {
    title: 'This page needs a link.',
    text: 'The page keeps its secret in memory only, so that no other page and no file ever holds it. A reload therefore ends it.',
  },
  usedLink: {
    title: 'This link is not valid any more.',
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
};

export const STATES = {
  loading: 'Loading …',
  retry: 'Try again',
  more: 'Show more',
  copy: 'Copy',
  copied: 'Copied',
  none: 'none',
  cancel: 'Cancel',
};

export const FAILURES = {
  late: 'svc took too long to answer.',
  unreachable: 'The proxy does not answer.',
  internal: 'svc failed on this call.',
  no_session: 'This page has ended.',
  memory_away: 'The memory cannot answer now. Look with: svc doctor',
} as Readonly<Record<string, string>>;
