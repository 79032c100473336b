import { expect } from 'vitest';
import { type BodyList, readBodyList } from './body-list.ts';
import { type CallPair, type Stage, evidence } from './stage.ts';
import { PROVIDER_KEY } from './svc.ts';

/** What must hold between what a client sent and got, and what left for the provider and came back. */

export type ListName = 'messages' | 'input';

export type BodyPair = Pick<CallPair, 'clientBody' | 'forwardedBody'>;

/** Every answer reached its client byte for byte. */
export function expectSameAnswers(pairs: readonly CallPair[]): void {
  for (const { record, exchange, clientAnswer, providerAnswer } of pairs) {
    expect(exchange.answer?.startLine).toContain(String(record.status));
    expectBytes(clientAnswer, providerAnswer, `answer ${record.n}`);
  }
}

/** Every request left with its client's own bytes. */
export function expectSameBodies(pairs: readonly CallPair[]): void {
  for (const { record, clientBody, forwardedBody } of pairs) {
    expectBytes(forwardedBody, clientBody, `request ${record.n}`);
  }
}

/** Every answer of a model route says what svc did. */
export function expectEvidence(pairs: readonly CallPair[]): void {
  for (const pair of pairs) {
    expect(evidence(pair, 'x-svc-local-proxy')).toMatch(/^\d+\.\d+\.\d+$/);
    expect(evidence(pair, 'x-svc-request-id')).toMatch(/^req_/);
    expect(evidence(pair, 'x-svc-memory-mode')).toBe('read-write');
    expect(evidence(pair, 'x-svc-memory-state')).toMatch(/^[a-z_]+$/);
    expect(evidence(pair, 'x-svc-compression-mode')).toMatch(/^[a-z]+$/);
    expect(evidence(pair, 'x-svc-continuity-state')).toMatch(/^[a-z_]+$/);
    for (const name of ['original-input', 'forwarded-input', 'recalled']) {
      expect(evidence(pair, `x-svc-${name}-tokens`)).toMatch(/^\d+$/);
    }
  }
}

/** R14: the provider gets its own key and never the token of this machine; the client never the key. */
export function expectKeysInPlace(stage: Stage): void {
  const { token } = stage.svc;
  for (const { headers, body } of stage.provider.records) {
    const values = headers.filter((_, index) => index % 2 === 1);
    expect(values.some((value) => value.endsWith(PROVIDER_KEY))).toBe(true);
    expect(values.some((value) => value.includes(token))).toBe(false);
    expect(headers.some((name) => /^x-svc-/i.test(name))).toBe(false);
    expect(body.includes(token)).toBe(false);
  }
  for (const { answer } of stage.tap.exchanges) {
    expect(answer?.headers.join('\n')).not.toContain(PROVIDER_KEY);
    expect(answer?.body.includes(PROVIDER_KEY)).toBe(false);
  }
}

/** What the proxy put into a body; '' when nothing. Fails when it did anything but one insertion. */
export function insertedText({ clientBody, forwardedBody }: CallPair): string {
  const start = commonPrefix(clientBody, forwardedBody);
  const tail = clientBody.subarray(start);
  const end = forwardedBody.length - tail.length;
  expectBytes(forwardedBody.subarray(end), tail, 'behind what was inserted');
  return forwardedBody.toString('utf8', start, end);
}

/** The index of the one element that differs; -1 when none. Everything outside the list is equal. */
export function changedItem({ clientBody, forwardedBody }: CallPair, name: ListName): number {
  const client = readBodyList(clientBody, name);
  const forwarded = readBodyList(forwardedBody, name);
  expectBytes(forwarded.head, client.head, 'before the list');
  expectBytes(forwarded.tail, client.tail, 'after the list');
  expect(forwarded.items.length).toBe(client.items.length);
  const changed = client.items.flatMap((item, index) =>
    forwarded.items[index]?.equals(item) === true ? [] : [index],
  );
  expect(changed.length).toBeLessThan(2);
  return changed[0] ?? -1;
}

/**
 * From each request to the next, what the client left as it was left svc as it was: item by item,
 * and as one byte prefix wherever the client's own bytes were one. Returns how many items were
 * compared, so that a test can say that it compared any.
 */
export function expectStablePrefix(pairs: readonly BodyPair[], name: ListName): StableCounts {
  const counts = { items: 0, prefixes: 0 };
  const lists = pairs.map(({ clientBody, forwardedBody }) => ({
    client: readBodyList(clientBody, name),
    forwarded: readBodyList(forwardedBody, name),
  }));
  for (const [index, next] of lists.entries()) {
    const before = lists[index - 1];
    if (before === undefined) continue;
    counts.items += expectSameItems(before, next);
    if (next.client.head.equals(before.client.head)) {
      expect(next.forwarded.head.equals(before.forwarded.head)).toBe(true);
    }
    if (!startsWith(next.client.prefix, before.client.prefix)) continue;
    counts.prefixes += 1;
    expect(startsWith(next.forwarded.prefix, before.forwarded.prefix), `request ${index + 1}`).toBe(
      true,
    );
  }
  return counts;
}

export interface StableCounts {
  readonly items: number;
  readonly prefixes: number;
}

interface BothLists {
  readonly client: BodyList;
  readonly forwarded: BodyList;
}

function expectSameItems(before: BothLists, next: BothLists): number {
  let compared = 0;
  for (const [index, item] of before.client.items.entries()) {
    const now = next.client.items[index];
    const forwarded = before.forwarded.items[index];
    const forwardedNow = next.forwarded.items[index];
    if (now === undefined || said(now) !== said(item)) continue;
    compared += 1;
    expect(said(forwardedNow)).toBe(said(forwarded));
    if (forwarded === undefined || forwardedNow === undefined) throw new Error('an item is gone');
    if (now.equals(item)) expectBytes(forwardedNow, forwarded, `item ${index}`);
  }
  return compared;
}

/** Bodies are long: a failure shows the place, not the whole. */
function expectBytes(got: Buffer, wanted: Buffer, what: string): void {
  const at = got.equals(wanted) ? -1 : Math.max(0, commonPrefix(got, wanted) - 20);
  const around = (bytes: Buffer) => (at === -1 ? '' : bytes.toString('utf8', at, at + 80));
  expect({ bytes: got.length, from: at, text: around(got) }, what).toEqual({
    bytes: wanted.length,
    from: -1,
    text: around(wanted),
  });
}

/** What an item says: cache marks and string-or-one-block form do not count. */
function said(item: Buffer | undefined): string {
  const value: unknown = JSON.parse(item?.toString() ?? 'null', (key, inner: unknown) => {
    if (key === 'cache_control') return undefined;
    return key === 'content' && typeof inner === 'string' ? [{ type: 'text', text: inner }] : inner;
  });
  return JSON.stringify(value);
}

function startsWith(bytes: Buffer, prefix: Buffer): boolean {
  return bytes.subarray(0, prefix.length).equals(prefix);
}

function commonPrefix(a: Buffer, b: Buffer): number {
  const length = Math.min(a.length, b.length);
  let at = 0;
  while (at < length && a[at] === b[at]) at += 1;
  return at;
}
