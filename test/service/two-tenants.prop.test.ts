import { randomBytes } from 'node:crypto';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { promptOf } from '../support/dialect-wire.ts';
import { type ModelService, openModelService } from '../support/model-service.ts';

/**
 * The law of two tenants: whoever else uses a service, and says the same words in the same spaces, a
 * tenant's provider gets the very bytes that it would get if the tenant were alone, and no other
 * tenant's credential.
 */

const DIALECT = 'anthropic_messages';
const TENANTS = ['default', 'acme'] as const;
const TOLD = [
  'Remember this: the deploy code word of our staging cluster is marmalade.',
  'Note for later: the parser of the billing service writes its nodes in reverse order.',
];
const ASKED = [
  'What is the deploy code word of our staging cluster?',
  'In which order does the parser of the billing service write its nodes?',
];

interface Step {
  readonly tenant: (typeof TENANTS)[number];
  readonly space: string;
  readonly what: 'tell' | 'ask';
  readonly about: number;
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    tenant: fc.constantFrom(...TENANTS),
    space: fc.constantFrom('shop', 'global'),
    // History before an exchange is kept in the background, at a time that chance decides: none here.
    what: fc.constantFrom<Step['what']>('tell', 'ask'),
    about: fc.nat(1),
  }),
  { minLength: 4, maxLength: 12 },
);

function bodyOf({ what, about }: Step): object {
  const [told = '', asked = ''] = [TOLD[about], ASKED[about]];
  if (what === 'tell') return promptOf(DIALECT, told);
  return promptOf(DIALECT, asked);
}

/** The bodies that each tenant's provider saw, by its credential. */
async function run(pepper: Buffer, given: readonly Step[]): Promise<Record<string, string[]>> {
  const service: ModelService = await openModelService({ pepper });
  await service.ask('POST tenants', { tenant_id: 'acme' });
  const keys = new Map<string, string>();
  for (const tenant of TENANTS) {
    // oxlint-disable-next-line no-await-in-loop
    await service.addProvider(DIALECT, { credential: `sk-of-${tenant}` }, tenant);
    // oxlint-disable-next-line no-await-in-loop
    keys.set(tenant, await service.makeKey({ tenant }));
  }
  for (const step of given) {
    const key = keys.get(step.tenant) ?? '';
    const headers = { 'x-svc-memory-space': step.space };
    // oxlint-disable-next-line no-await-in-loop
    const answer = await service.send(DIALECT, bodyOf(step), { key, headers });
    expect(answer.status).toBe(200);
    // oxlint-disable-next-line no-await-in-loop
    await service.service.flush();
  }
  const seen: Record<string, string[]> = { default: [], acme: [] };
  for (const { headers, body } of service.provider.seen) {
    const credential = headers[headers.findIndex((name) => /^x-api-key$/i.test(name)) + 1] ?? '';
    seen[credential.replace('sk-of-', '')]?.push(body.toString());
  }
  await service.service.stop();
  return seen;
}

test('each tenant gets what it would get if it were alone', { timeout: 300_000 }, async () => {
  const both: Step[] = [
    { tenant: 'default', space: 'shop', what: 'tell', about: 0 },
    { tenant: 'acme', space: 'shop', what: 'tell', about: 0 },
    { tenant: 'default', space: 'shop', what: 'ask', about: 0 },
    { tenant: 'acme', space: 'shop', what: 'ask', about: 0 },
  ];
  await fc.assert(
    fc.asyncProperty(steps, async (given) => {
      const pepper = randomBytes(32);
      const together = await run(pepper, given);
      for (const tenant of TENANTS) {
        // oxlint-disable-next-line no-await-in-loop
        const alone = await run(
          pepper,
          given.filter((step) => step.tenant === tenant),
        );
        expect(together[tenant]).toEqual(alone[tenant]);
      }
    }),
    { numRuns: 4, examples: [[both]], endOnFailure: true },
  );
});
