/** Who may see the page, and who may use its API (R47). */

const TEST = 'test/local/ui.test.ts';
const GATE = 'src/core/http/ui-gate.ts';
const SESSIONS = 'src/local/ui/sessions.ts';

export const PAGE = [
  {
    name: 'an open page masks no key of a configuration that was changed',
    file: 'src/cli/compose.ts',
    from: '      void ui.apply(next);\n',
    to: '',
    test: 'test/cli/page-masks.test.ts',
  },
  {
    name: 'the page takes any Host',
    file: GATE,
    from: 'if (!isOwnHost(host, port)) {',
    to: 'if (host.length > 1_000) {',
    test: TEST,
  },
  {
    name: 'the page takes any Origin',
    file: GATE,
    from: '(origin) => origin.toLowerCase() !== `http://${host}`',
    to: "(origin) => origin === ''",
    test: TEST,
  },
  {
    name: 'the page may be shown in a frame of another origin',
    file: GATE,
    from: "headers.get('sec-fetch-dest')?.join() === 'document'",
    to: "headers.has('sec-fetch-dest')",
    test: TEST,
  },
  {
    name: 'the page takes a form',
    file: GATE,
    from: "headers.get('content-type')?.[0]?.toLowerCase() !== 'application/json'",
    to: "!headers.has('content-type')",
    test: TEST,
  },
  {
    name: 'the page takes the local token beside its session',
    file: GATE,
    from: 'credentials.some((name) => headers.has(name))',
    to: "headers.has('x-no-token')",
    test: TEST,
  },
  {
    name: 'the cookie alone opens the API',
    file: SESSIONS,
    from: 'isOneOf([cookie], [one.cookie]) && isOneOf([secret], [one.secret])',
    to: "isOneOf([cookie], [one.cookie]) && secret !== ''",
    test: TEST,
  },
  {
    name: 'the secret alone opens the API',
    file: SESSIONS,
    from: '(one) => isOneOf([cookie], [one.cookie]) &&',
    to: "(one) => cookie !== '' &&",
    test: TEST,
  },
  {
    name: 'a link is good twice',
    file: SESSIONS,
    from: 'this.#links = links.filter((link) => !used.includes(link));',
    to: 'this.#links = links;',
    test: TEST,
  },
  {
    name: 'a link is good for ever',
    file: SESSIONS,
    from: 'links.filter(({ digest })',
    to: 'this.#links.filter(({ digest })',
    test: TEST,
  },
  {
    name: 'a session that nobody uses stays open',
    file: SESSIONS,
    from: 'this.#isWithin(at, UI_TIMES.sessionMs) && this.#isWithin(usedAt, UI_TIMES.idleMs)',
    to: 'this.#isWithin(at, UI_TIMES.sessionMs)',
    test: TEST,
  },
  {
    name: 'a session that is used never ends',
    file: SESSIONS,
    from: 'this.#isWithin(at, UI_TIMES.sessionMs) && this',
    to: 'this',
    test: TEST,
  },
];
