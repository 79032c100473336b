// Mutants of the rules for subscription logins (R46).
export const LOGINS = [
  {
    name: 'a login passes without the local token',
    file: 'src/core/http/gate.ts',
    from: 'if (!isInHeader && !(isInPath && isForModels)) {',
    to: 'if (false) {',
    test: 'test/core/logins.test.ts',
  },
  {
    name: 'the path token opens every route',
    file: 'src/core/http/gate.ts',
    from: '!(isInPath && isForModels)',
    to: '!isInPath',
    test: 'test/core/logins.test.ts',
  },
  {
    name: 'a key may stand beside a login',
    file: 'src/core/http/logins.ts',
    from: 'KEY_HEADERS.some((name) => headers.has(name))',
    to: 'false',
    test: 'test/core/logins.test.ts',
  },
  {
    name: 'any program may use a login',
    file: 'src/core/http/logins.ts',
    from: '!mark.begins.some((begin) => value.toLowerCase().startsWith(begin))',
    to: 'false',
    test: 'test/core/logins.test.ts',
  },
  {
    name: 'a login may go to any host',
    file: 'src/core/settings/config-upstreams.ts',
    from: 'upstream.baseUrl !== baseUrl && !isStandIn',
    to: 'false',
    test: 'test/core/logins.test.ts',
  },
];
