import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { objectSigner, publicJwk, publicPartOf } from '../../src/core/jws.ts';
import { newReceiptId } from '../../src/core/ids.ts';
import {
  NOTHING_DECIDED,
  type ReceiptClosing,
  type ReceiptOpening,
} from '../../src/core/receipts.ts';
import type { ClosedHead, ReceiptRow, ReceiptStore } from '../../src/ports/receipt-store.ts';

/** Facts of requests, and places for what becomes of them. */

export const RECEIVED_AT = Date.parse('2026-11-20T10:00:00.000Z');

export function openingOf(more: Partial<ReceiptOpening> = {}): ReceiptOpening {
  const at = more.at ?? RECEIVED_AT;
  return {
    receiptId: newReceiptId(at, randomBytes),
    at,
    tenant: 'default',
    keyId: '4kPzQ0aB71Xc',
    kind: 'model',
    dialect: 'openai_responses',
    streamed: true,
    space: 'project/api',
    sessionId: 'c1',
    model: 'gpt-5',
    provider: { id: 'prov_a', kind: 'custom', host: 'models.example.com' },
    decided: { ...NOTHING_DECIDED, original_input_tokens: 120, forwarded_input_tokens: 100 },
    ...more,
  };
}

export function closingOf(more: Partial<ReceiptClosing> = {}): ReceiptClosing {
  return {
    status: 'completed',
    httpStatus: 200,
    errorCode: null,
    errorSource: null,
    times: { total: 250 },
    captureState: 'none',
    capturedRecords: 0,
    usage: { input: 90, cacheRead: 20, cacheWrite: 0, output: 7 },
    providerUsage: { input_tokens: 110, output_tokens: 7 },
    ...more,
  };
}

/** A row with so much in its body as a test looks at. */
export function rowOfReceipt(
  more: Partial<Omit<ReceiptRow, 'body' | 'counts'>> & { readonly at?: number } = {},
): ReceiptRow {
  const { at = RECEIVED_AT, ...given } = more;
  return {
    tenant: 'default',
    receiptId: newReceiptId(at, randomBytes),
    node: 'node_a',
    seq: 1,
    keyId: 'k1',
    providerId: 'prov_a',
    model: 'gpt-5',
    status: 'completed',
    body: JSON.stringify({ at }),
    counts: {
      failed: 0,
      originalInputTokens: 80,
      forwardedInputTokens: 60,
      recalledTokens: 5,
      elidedTokens: 25,
      inputTokens: 90,
      cacheReadTokens: 30,
      outputTokens: 10,
      spentTokens: 100,
    },
    ...given,
  };
}

/** A store that only remembers, and that can be away. */
export function rememberingStore(): ReceiptStore & {
  readonly rows: ReceiptRow[];
  readonly heads: ClosedHead[];
  isAway: boolean;
} {
  const store = {
    rows: [] as ReceiptRow[],
    heads: [] as ClosedHead[],
    isAway: false,
    storeReceipts: async (given: readonly ReceiptRow[]) => {
      if (store.isAway) throw new Error('away');
      const known = new Set(store.rows.map(({ receiptId }) => receiptId));
      store.rows.push(...given.filter(({ receiptId }) => !known.has(receiptId)));
    },
    openHeads: async ({ node, limit }: { node: string; limit: number }) => {
      const last = new Map<string, number>();
      for (const row of store.rows.filter((one) => one.node === node)) {
        last.set(row.tenant, Math.max(last.get(row.tenant) ?? 0, row.seq));
      }
      const closed = new Set(
        store.heads.filter((one) => one.node === node).map((one) => one.tenant),
      );
      return [...last]
        .filter(([tenant]) => !closed.has(tenant))
        .slice(0, limit)
        .map(([tenant, lastSeq]) => ({ tenant, node, lastSeq }));
    },
    closeHeads: async (given: readonly ClosedHead[]) => {
      if (store.isAway) throw new Error('away');
      store.heads.push(...given);
    },
  };
  return store;
}

/** Signs with a key of its own. */
export function testSigner() {
  const { privateKey } = generateKeyPairSync('ed25519');
  const text = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64');
  const jwk = publicJwk(publicPartOf(text));
  const signer = objectSigner({ kid: jwk.kid, privateKey: text });
  const sign = async (canonical: readonly string[]) => canonical.map(signer.signText);
  return { sign, signer, jwk };
}
