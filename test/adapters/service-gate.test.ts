import { expect, onTestFinished, test, vi } from 'vitest';
import { ServiceGate } from '../../src/adapters/memory-client/gate.ts';
import { KeyIdentity } from '../../src/adapters/memory-client/key-identity.ts';
import { Operations } from '../../src/adapters/memory-client/operations.ts';
import { ServiceLink, faultIn } from '../../src/adapters/memory-client/service-link.ts';
import { faultOf } from '../../src/core/memory-api/faults.ts';
import { MemoryError } from '../../src/core/errors.ts';

test('the gate: five failures in a row open it for 15 seconds, then one call tries', () => {
  let now = 0;
  const gate = new ServiceGate(() => now);
  const fail = (): void => gate.failed(new MemoryError('timeout', 'late'));
  for (let count = 0; count < 4; count += 1) fail();
  gate.succeeded();
  for (let count = 0; count < 4; count += 1) fail();
  expect(() => gate.admit()).not.toThrow();
  fail();
  expect(() => gate.admit()).toThrowError(MemoryError);
  now = 14_999;
  expect(() => gate.admit()).toThrowError(MemoryError);
  now = 15_000;
  expect(() => gate.admit()).not.toThrow();
  fail();
  expect(() => gate.admit()).toThrowError(MemoryError);
  now = 30_000;
  gate.succeeded();
  fail();
  expect(() => gate.admit()).not.toThrow();
});

test('429: the state says so for the whole pause, whatever failed before it', () => {
  let now = 0;
  const gate = new ServiceGate(() => now);
  for (let count = 0; count < 5; count += 1) gate.failed(new MemoryError('timeout', 'late'));
  now = 15_000;
  const fault = faultOf('RATE_LIMIT_EXCEEDED', { message: 'No.', requestId: 'req_fake' });
  const headers = ['retry-after', '8'];
  gate.failed(faultIn({ status: 429, headers, body: Buffer.from(JSON.stringify(fault)) }));
  now += 7_999;
  expect(() => gate.admit()).toThrowError(expect.objectContaining({ reason: 'rate_limited' }));
  now += 1;
  expect(() => gate.admit()).not.toThrow();
});

test.each([
  [429, 'rate_limited'],
  [503, 'unavailable'],
])(
  '%i: a gateway in front of the service gets the time that it asked for too',
  (status, reason) => {
    let now = 0;
    const gate = new ServiceGate(() => now);
    const headers = ['retry-after', '30'];
    gate.failed(faultIn({ status, headers, body: Buffer.from('<html>slow down</html>') }));
    now = 29_999;
    expect(() => gate.admit()).toThrowError(expect.objectContaining({ reason }));
    now = 30_000;
    expect(() => gate.admit()).not.toThrow();
  },
);

test('503: what the key may do is asked again after 15 seconds, as where nobody answers', async () => {
  vi.useFakeTimers();
  const gate = new ServiceGate(() => 0);
  const link = new ServiceLink({
    baseUrl: 'http://127.0.0.1:9',
    serviceKey: '',
    allowPrivate: true,
  });
  onTestFinished(() => link.close());
  const operations = new Operations(link, gate);
  const headers = ['retry-after', '30'];
  const asked = vi
    .spyOn(operations, 'whoAmI')
    .mockRejectedValue(faultIn({ status: 503, headers, body: Buffer.from('') }));
  const none = { report: () => undefined, onTenant: () => undefined };
  const onHeard = (): Promise<void> => Promise.resolve();
  const identity = new KeyIdentity({ operations, gate, onHeard, ...none });
  onTestFinished(() => identity.close());
  await identity.watch();
  expect(asked).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(asked).toHaveBeenCalledTimes(2);
});
