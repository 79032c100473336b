/** Safety checks of capture and space: whose words a text is, and which memory a request may see. */

const UNKNOWN_ORIGIN = 'test/core/unknown-origin.test.ts';

export const ORIGINS = [
  {
    name: 'a frame inside a hook’s reminder counts as typed',
    file: 'src/core/conversation/end-reminders.ts',
    from: 'if (!rest.startsWith(REMINDER) || end === -1) return undefined;',
    to: 'if (!rest.startsWith(REMINDER) || end === -1) break;',
    test: UNKNOWN_ORIGIN,
  },
  {
    name: 'what stands beside a tool’s result counts as typed',
    file: 'src/core/conversation/human-text.ts',
    from: 'state.isOpen = false;',
    to: '',
    test: UNKNOWN_ORIGIN,
  },
  {
    name: 'what a client repeats before a summary is said again',
    file: 'src/core/conversation/exchanges.ts',
    from: 'if (item.isSummary === true && !draft.isAnswered)',
    to: 'if (item.isSummary === true && draft.isAnswered)',
    test: UNKNOWN_ORIGIN,
  },
];
