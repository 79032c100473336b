import { asRecord } from '../../../src/core/bytes/json-fields.ts';
import { type PublicJwk, verifyObject, type VerifyOutcome } from './jws.ts';

/**
 * Checks whether a set of receipts is complete and unchanged: each signature is valid, no receipt number of a node and
 * tenant is missing, and each tenant has at least as many receipts as its signed total states. A receipt without a
 * valid signature counts as missing, so a forged one hides no gap. See receipts.ts for heads and totals.
 */

export interface WrongReceipt {
  readonly id: string;
  /** Why the signature is not accepted; 'twice' if another receipt has the same number. */
  readonly outcome: Exclude<VerifyOutcome, 'valid'> | 'twice';
}

/** The numbers `from` to `to` of one node and tenant, of which no receipt is in the set. */
export interface MissingReceipts {
  readonly tenant: string;
  readonly node: string;
  readonly from: number;
  readonly to: number;
}

/**
 * `count`: a tenant's signed total minus the receipts that its nodes made. A node made as many as the highest number
 * that one of its receipts or heads for the tenant states.
 */
export interface UnknownReceipts {
  readonly tenant: string;
  readonly count: number;
}

export interface AuditResult {
  readonly receipts: number;
  readonly heads: number;
  readonly wrong: readonly WrongReceipt[];
  readonly missing: readonly MissingReceipts[];
  readonly unknown: readonly UnknownReceipts[];
  /**
   * Tenants that have no signed total, and a node without a signed head. The number of their receipts is unknown, so
   * the last receipts may be missing.
   */
  readonly endless: readonly string[];
}

/** The receipt numbers that one node gave to one tenant. */
interface Numbers {
  readonly tenant: string;
  readonly node: string;
  /** One bit for each number that was seen. */
  seen: Uint8Array;
  /** The largest number that a receipt or a head states. */
  last: number;
  hasHead: boolean;
  /** The smallest number of a receipt; `lastSeen` is the largest. */
  first: number;
  lastSeen: number;
}

export class ReceiptAudit {
  readonly #keys: readonly Pick<PublicJwk, 'kid' | 'x'>[];
  readonly #wrong: WrongReceipt[] = [];
  readonly #numbers = new Map<string, Numbers>();
  /** By tenant, the largest number of receipts that one of its signed totals states. */
  readonly #totals = new Map<string, number>();
  #receipts = 0;
  #heads = 0;

  constructor(keys: readonly Pick<PublicJwk, 'kid' | 'x'>[]) {
    this.#keys = keys;
  }

  /** Adds one object to the audit: a receipt of a request or of a purge, a head, or a total. */
  take(value: unknown): void {
    const fields = asRecord(value);
    const isHead = fields['object'] === 'svc.receipt_head';
    const isTotal = fields['object'] === 'svc.receipt_total';
    if (isHead) this.#heads += 1;
    else if (!isTotal) this.#receipts += 1;
    const id = idOf(fields) ?? `number ${this.#receipts + this.#heads}`;
    const outcome = verifyObject(fields, this.#keys);
    if (outcome !== 'valid') {
      this.#wrong.push({ id, outcome });
      return;
    }
    const { tenant_id: tenant } = fields;
    if (isTotal) {
      const { receipts } = fields;
      if (typeof tenant !== 'string' || typeof receipts !== 'number') return;
      this.#totals.set(tenant, Math.max(receipts, this.#totals.get(tenant) ?? 0));
      return;
    }
    const { node, last } = isHead
      ? { node: fields['node'], last: fields['last_seq'] }
      : { node: asRecord(fields['issuer'])['node'], last: asRecord(fields['issuer'])['seq'] };
    if (typeof tenant !== 'string' || typeof node !== 'string' || typeof last !== 'number') return;
    const numbers = this.#numbersOf(tenant, node);
    numbers.last = Math.max(numbers.last, last);
    if (isHead) {
      numbers.hasHead = true;
      return;
    }
    numbers.first = Math.min(numbers.first, last);
    numbers.lastSeen = Math.max(numbers.lastSeen, last);
    if (!see(numbers, last)) this.#wrong.push({ id, outcome: 'twice' });
  }

  /** Returns what is wrong. `isPartial`: the set covers only some days, so only gaps between two numbers count. */
  result({ isPartial = false }: { readonly isPartial?: boolean } = {}): AuditResult {
    const missing = [...this.#numbers.values()].flatMap((numbers) =>
      isPartial
        ? gapsIn(numbers, numbers.first, numbers.lastSeen)
        : gapsIn(numbers, 1, numbers.last),
    );
    const unknown = isPartial ? [] : this.#unknown();
    const endless = isPartial ? [] : this.#endless();
    const [receipts, heads, wrong] = [this.#receipts, this.#heads, this.#wrong];
    return { receipts, heads, wrong, missing, unknown, endless };
  }

  #unknown(): readonly UnknownReceipts[] {
    return [...this.#totals].flatMap(([tenant, total]) => {
      const own = [...this.#numbers.values()].filter((numbers) => numbers.tenant === tenant);
      const count = total - own.reduce((sum, { last }) => sum + last, 0);
      return count > 0 ? [{ tenant, count }] : [];
    });
  }

  #endless(): readonly string[] {
    const open = [...this.#numbers.values()].filter(({ hasHead }) => !hasHead);
    const tenants = new Set(open.map(({ tenant }) => tenant));
    return [...tenants].filter((tenant) => !this.#totals.has(tenant));
  }

  #numbersOf(tenant: string, node: string): Numbers {
    const name = `${tenant} ${node}`;
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const numbers: Numbers = {
      tenant,
      node,
      seen: new Uint8Array(64),
      last: 0,
      hasHead: false,
      first: Infinity,
      lastSeen: 0,
    };
    this.#numbers.set(name, numbers);
    return numbers;
  }
}

/** Marks a number as seen. Returns false if it was marked already. */
function see(numbers: Numbers, seq: number): boolean {
  const [place, bit] = [seq >> 3, 1 << (seq & 7)];
  if (place >= numbers.seen.length) {
    const longer = new Uint8Array(Math.max(place + 1, numbers.seen.length * 2));
    longer.set(numbers.seen);
    numbers.seen = longer;
  }
  const before = numbers.seen[place] ?? 0;
  numbers.seen[place] = before | bit;
  return (before & bit) === 0;
}

function gapsIn(
  { tenant, node, seen }: Numbers,
  first: number,
  last: number,
): readonly MissingReceipts[] {
  const gaps: { tenant: string; node: string; from: number; to: number }[] = [];
  for (let seq = first; seq <= last; seq += 1) {
    if (((seen[seq >> 3] ?? 0) & (1 << (seq & 7))) !== 0) continue;
    const open = gaps.at(-1);
    if (open?.to === seq - 1) open.to = seq;
    else gaps.push({ tenant, node, from: seq, to: seq });
  }
  return gaps;
}

function idOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const names = ['receipt_id', 'purge_id', 'node'].map((name) => fields[name]);
  return names.find((name): name is string => typeof name === 'string');
}
