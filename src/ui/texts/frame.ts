/** The texts around every view, and those of the states that all views share. */

export const VIEWS = {
  now: 'Today',
  request: 'Request',
  memory: 'Memory',
  savings: 'Savings',
  requests: 'Requests',
  health: 'Health',
};

export const FRAME = {
  views: 'Views',
  skip: 'Skip to content',
  foot: 'svc serves this page on your machine. The page contacts no other host.',
  proxy: (host: string) => `Proxy on ${host}`,
  version: (version: string) => `version ${version}`,
  closed: 'Closed',
  newLink:
    'Get a new link in a terminal. Open it, or paste it into this tab to return to the same view.',
  lost: 'The proxy does not answer. This page tries again every two seconds and shows earlier data until then.',
  path: 'Where you are',
};

export const CLOSED = {
  noLink: {
    title: 'This page needs a link.',
    text: 'A link opens a session in one tab. The tab keeps the secret of the session until it is closed, so a reload and a bookmark in this tab work, and a new tab needs a new link.',
  },
  usedLink: {
    title: 'This link is not valid any more.',
    text: 'A link works once, within a minute.',
  },
  ended: {
    title: 'This page has ended.',
    text: 'A page ends after an hour without use, after 12 hours in any case, and when the proxy restarts. No stored data is lost.',
  },
  byHand: {
    title: 'This page is closed.',
    text: 'Its link and its cookie do not work any more.',
  },
  away: {
    title: 'The proxy does not answer.',
    text: 'It may have stopped. Check it with: svc status',
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
} as Readonly<Record<string, string>>;
