import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  HANDLER_BYTES,
  HandlerShelf,
  SHELF_BOUNDS,
  type ShelvedHandler,
} from '../../src/server/models/handler-shelf.ts';

const MIB = 1 << 20;

class Handler implements ShelvedHandler {
  readonly tenant: string;
  held: number;
  hasLeft = false;

  constructor(tenant: string, held = 0) {
    this.tenant = tenant;
    this.held = held;
  }

  heldBytes(): number {
    return this.held;
  }

  leave(): void {
    this.hasLeft = true;
  }
}

function put(shelf: HandlerShelf<Handler>, name: string, handler: Handler): Handler {
  shelf.put(name, handler);
  return handler;
}

test('of 6,000 keys the 5,000 that were used last have a handler', () => {
  const shelf = new HandlerShelf<Handler>(SHELF_BOUNDS);
  const all = Array.from({ length: 5_000 }, (_, at) => put(shelf, `k${at}`, new Handler(`t${at}`)));
  expect(shelf.get('k0')).toBe(all[0]);
  for (let at = 5_000; at < 6_000; at += 1) put(shelf, `k${at}`, new Handler(`t${at}`));
  expect(shelf.size).toBe(5_000);
  expect(all.map(({ hasLeft }) => hasLeft).indexOf(true)).toBe(1);
  expect(all.filter(({ hasLeft }) => hasLeft)).toHaveLength(1_000);
  expect(shelf.bytes).toBe(5_000 * HANDLER_BYTES);
});

test('a tenant alone uses all of the room, and gives it back first', () => {
  const shelf = new HandlerShelf<Handler>({ bytesMax: 100 * MIB, handlersMax: 1_000 });
  const busy = Array.from({ length: 9 }, (_, at) =>
    put(shelf, `b${at}`, new Handler('busy', 10 * MIB)),
  );
  expect(busy.some(({ hasLeft }) => hasLeft)).toBe(false);
  const early = put(shelf, 'early', new Handler('early', 10 * MIB));
  for (let at = 0; at < 9; at += 1) shelf.get(`b${at}`);
  const others = [1, 2, 3].map((at) => put(shelf, `o${at}`, new Handler(`other${at}`, 10 * MIB)));
  expect([early, ...others].some(({ hasLeft }) => hasLeft)).toBe(false);
  expect(busy.filter(({ hasLeft }) => hasLeft)).toHaveLength(4);
});

test('a tenant with ever more keys pushes out its own', () => {
  const shelf = new HandlerShelf<Handler>({ bytesMax: 1_000 * MIB, handlersMax: 100 });
  const quiet = Array.from({ length: 60 }, (_, at) =>
    put(shelf, `q${at}`, new Handler(`quiet${at}`)),
  );
  for (let at = 0; at < 500; at += 1) put(shelf, `b${at}`, new Handler('busy'));
  expect(quiet.some(({ hasLeft }) => hasLeft)).toBe(false);
  expect(shelf.size).toBe(100);
});

test('a conversation larger than all of the room takes it from nobody', () => {
  const shelf = new HandlerShelf<Handler>({ bytesMax: 100 * MIB, handlersMax: 1_000 });
  const others = Array.from({ length: 20 }, (_, at) =>
    put(shelf, `o${at}`, new Handler(`t${at}`, 2 * MIB)),
  );
  const giant = put(shelf, 'giant', new Handler('giant'));
  giant.held = 101 * MIB;
  shelf.weigh('giant');
  expect([giant.hasLeft, others.some(({ hasLeft }) => hasLeft)]).toEqual([true, false]);
  expect(shelf.bytes).toBe(20 * (2 * MIB + HANDLER_BYTES));
});

test('a handler that has left is not weighed any more, nor is its name\u2019s next one in its place', () => {
  const shelf = new HandlerShelf<Handler>({ bytesMax: 100 * MIB, handlersMax: 1 });
  const first = put(shelf, 'a', new Handler('a'));
  put(shelf, 'b', new Handler('b'));
  first.held = 50 * MIB;
  shelf.weigh('a');
  expect(shelf.bytes).toBe(HANDLER_BYTES);
  const again = put(shelf, 'a', new Handler('a', MIB));
  shelf.weigh('a');
  expect([shelf.bytes, again.hasLeft]).toEqual([MIB + HANDLER_BYTES, false]);
  put(shelf, 'a', new Handler('a'));
  expect([shelf.bytes, again.hasLeft]).toEqual([HANDLER_BYTES, true]);
});

const uses = fc.array(
  fc.record({ tenant: fc.nat(5), key: fc.nat(6), held: fc.nat(60), at: fc.nat(3) }),
  { minLength: 1, maxLength: 200 },
);

test('whatever is used, all handlers stay within their room, and nobody within their part gives way to a tenant that is not', () => {
  const bounds = { bytesMax: 40 * (HANDLER_BYTES + 40), handlersMax: 16 };
  fc.assert(
    fc.property(uses, (steps) => {
      const shelf = new HandlerShelf<Handler>(bounds);
      const partOf = (all: readonly Handler[], tenant: string) => {
        const own = all.filter((one) => one.tenant === tenant);
        const bytes = own.reduce((sum, { held }) => sum + held + HANDLER_BYTES, 0);
        return Math.max(bytes / bounds.bytesMax, own.length / bounds.handlersMax);
      };
      for (const { tenant: number, key, held, at } of steps) {
        const tenant = `t${number}`;
        const name = `${tenant}:${key}`;
        const before = new Set(shelf.values());
        const handler = shelf.get(name) ?? put(shelf, name, new Handler(tenant, held));
        handler.held = held * (at === 0 ? HANDLER_BYTES : 1);
        shelf.weigh(name);
        const left = [...before.add(handler)].filter(({ hasLeft }) => hasLeft);
        const now = shelf.values();
        const bytes = now.reduce((sum, one) => sum + one.held + HANDLER_BYTES, 0);
        expect([shelf.size, shelf.bytes]).toEqual([now.length, bytes]);
        expect(shelf.size).toBeLessThanOrEqual(bounds.handlersMax);
        expect(shelf.bytes).toBeLessThanOrEqual(bounds.bytesMax);
        const isLargeNow = now.some((one) => partOf(now, one.tenant) > 1 / 4);
        if (left.length === 0 || !isLargeNow) continue;
        // A tenant still holds more than its part: whoever left held more than theirs too.
        for (const one of left)
          expect(partOf([...now, ...left], one.tenant)).toBeGreaterThan(1 / 4);
      }
    }),
  );
});
