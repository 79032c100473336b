import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/core/settings/config-schema.ts';
import { problemText } from '../../src/core/settings/config-values.ts';
import { COMPRESSION_MODES, MEMORY_MODES } from '../../src/core/http/modes.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('sk-1', '$API_KEY', '/v1', '::1'),
);
const loose = fc.oneof(fc.jsonValue(), text, fc.constantFrom(null, 0, -1, Infinity, [], {}));

/** Things shaped a little like a configuration, so that the readers below the root are reached. */
const nearly = fc.record(
  {
    version: fc.oneof(fc.constant(1), loose),
    proxy: fc.oneof(
      loose,
      fc.record({ host: loose, port: loose, relayPaths: loose }, { requiredKeys: [] }),
    ),
    memory: fc.oneof(
      loose,
      fc.record(
        { kind: fc.oneof(fc.constant('hosted'), loose), baseUrl: loose, serviceKey: loose },
        { requiredKeys: [] },
      ),
    ),
    upstreams: fc.oneof(
      loose,
      fc.array(
        fc.record(
          {
            name: loose,
            apiStyle: fc.oneof(fc.constantFrom(...DIALECTS), loose),
            baseUrl: fc.oneof(fc.webUrl(), loose),
            providerKey: fc.oneof(loose, fc.record({ env: text })),
            auth: loose,
            headers: fc.oneof(loose, fc.dictionary(text, loose)),
            query: fc.oneof(loose, fc.dictionary(text, loose)),
            allowPrivate: fc.oneof(fc.boolean(), loose),
          },
          { requiredKeys: [] },
        ),
        { maxLength: 3 },
      ),
    ),
    localToken: fc.oneof(loose, fc.record({ env: text })),
  },
  { requiredKeys: [] },
);

test('parsing never throws, and reports either settings or problems with a path', () => {
  fc.assert(
    fc.property(fc.oneof(nearly, loose), fc.dictionary(text, text), (value, environment) => {
      const { settings, problems, warnings } = parseConfig(value, environment);
      expect(settings === undefined).toBe(problems.length > 0);
      for (const problem of [...problems, ...warnings]) {
        expect(problem.path).toMatch(/^[\u0021-\u007e]+$/);
        expect(problemText(problem)).not.toMatch(/[\r\n]/);
      }
    }),
    { numRuns: 1000 },
  );
});

const SECRET = 'CANARY0123456789';

test('R29: no report ever holds a text that could be a key', () => {
  const secret = fc.constantFrom(
    `sk-${SECRET}`,
    SECRET,
    `x ${SECRET}`,
    `https://${SECRET}@a.example`,
  );
  const place = fc.array(
    fc.constantFrom('proxy', 'port', 'memory', 'upstreams', 'headers', SECRET),
    { maxLength: 3 },
  );
  fc.assert(
    fc.property(nearly, place, secret, (value, path, leaf) => {
      const planted = path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), leaf);
      const { problems, warnings } = parseConfig(
        { ...value, ...(typeof planted === 'object' ? planted : {}) },
        {},
      );
      const told = [...problems, ...warnings].map(problemText).join('\n');
      expect(told).not.toContain('CANARY');
    }),
    { numRuns: 500 },
  );
});

const headerText = fc
  .stringMatching(/^[ -~\u00a0-\u00ff]{0,20}$/)
  .filter((value) => !value.includes('$API_KEY'));
const keyText = fc.stringMatching(/^[!-~]{1,60}$/);

const validUpstream = fc.record({
  name: fc.stringMatching(/^[a-z0-9][a-z0-9_-]{0,20}$/),
  baseUrl: fc
    .webUrl({ validSchemes: ['https'], withQueryParameters: false })
    .filter((url) => !/[%]/.test(url)),
  providerKey: keyText,
  auth: fc.constantFrom('x-api-key', 'bearer', 'none'),
  headers: fc.dictionary(
    fc.stringMatching(/^x-[a-z]{1,10}$/).filter((name) => !name.startsWith('x-svc-')),
    headerText,
  ),
  query: fc.dictionary(fc.stringMatching(/^[a-z]{1,10}$/), headerText),
  allowPrivate: fc.constant(true),
});

const validConfigs = fc.record({
  version: fc.constant(1),
  proxy: fc.record({
    host: fc.constantFrom('127.0.0.1', '::1'),
    port: fc.integer({ min: 0, max: 65_535 }),
    memoryMode: fc.constantFrom(...MEMORY_MODES),
    compressionMode: fc.constantFrom(...COMPRESSION_MODES),
    inputBudget: fc.integer({ min: 0, max: 10_000_000 }),
    elisionEnabled: fc.boolean(),
  }),
  memory: fc.constant({ kind: 'embedded' }),
  upstreams: fc
    .tuple(
      fc.shuffledSubarray([...DIALECTS]),
      fc.array(validUpstream, { minLength: 3, maxLength: 3 }),
    )
    .map(([styles, upstreams]) =>
      styles.map((apiStyle, index) => ({ ...upstreams[index], apiStyle })),
    ),
  localToken: fc.stringMatching(/^svc_local_[A-Za-z0-9_-]{43}$/),
});

test('what is valid comes through unchanged', () => {
  fc.assert(
    fc.property(validConfigs, (config) => {
      const { settings, problems } = parseConfig(JSON.parse(JSON.stringify(config)), {});
      expect(problems).toEqual([]);
      const { memory, localToken } = config;
      expect(settings).toMatchObject({ proxy: config.proxy, memory, localToken });
      const written = config.upstreams.map((upstream) => ({
        ...upstream,
        baseUrl: expect.any(String),
      }));
      expect(settings?.upstreams).toMatchObject(written);
      for (const [index, { baseUrl }] of config.upstreams.entries()) {
        const kept = settings?.upstreams[index]?.baseUrl ?? '';
        expect(new URL(`${kept}/`).host).toBe(new URL(String(baseUrl)).host);
      }
    }),
    { numRuns: 500 },
  );
});
