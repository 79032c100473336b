import { textsOf } from '../../core/objects.ts';
import { recordOfBytes } from '../../../../src/core/memory-api/records.ts';
import type { RecalledPassage } from '../../../../src/ports/memory.ts';
import type { ObjectKind } from '../../ports/service-store.ts';
import { type OriginRow, originOf } from '../service-store/origins.ts';
import type { ItemFacts } from '../service-store/item-shapes.ts';

/** Texts with their records, as the statements of a recall give them. */

export interface SaidRow extends OriginRow {
  readonly space_id: number;
  /** The number of the passage or text that was asked for. */
  readonly n: number;
  readonly start_at: number;
  readonly end_at: number;
  readonly said_ref: string;
  readonly said_digest: string;
  readonly said_source: 'unverified' | null;
  readonly role: 'user' | 'assistant';
  readonly at: number;
  readonly message: number;
  readonly record_id: number;
  readonly kind: ObjectKind;
  readonly created_at: number;
  /** Null where another row of the same record has them. */
  readonly bytes: Uint8Array | null;
}

export interface SaidItem {
  readonly facts: ItemFacts;
  readonly whole: string;
}

/** The texts of one recall. Whatever was read for the search is an item without a second look. */
export class SaidTexts {
  /** By space and number of the record: its texts. */
  readonly #records = new Map<string, readonly { readonly text: string }[]>();
  /** By space and digest. */
  readonly #items = new Map<string, SaidItem>();

  /** Gives the whole text of each row. */
  add(rows: readonly SaidRow[]): string[] {
    for (const row of rows) {
      if (row.bytes !== null) this.#records.set(recordKey(row), textsOf(recordOfBytes(row.bytes)));
    }
    return rows.map((row) => {
      const whole = this.#records.get(recordKey(row))?.[row.message]?.text ?? '';
      this.#items.set(itemKey({ space: row.space, digest: row.said_digest }), {
        facts: factsOf(row),
        whole,
      });
      return whole;
    });
  }

  /** Undefined for a text that was not read. */
  itemOf(passage: Pick<RecalledPassage, 'space' | 'digest'>): SaidItem | undefined {
    return this.#items.get(itemKey(passage));
  }
}

function factsOf(row: SaidRow): ItemFacts {
  const { record_id: object, message, kind, role, created_at: createdAt } = row;
  return { object, message, kind, role, createdAt, origin: originOf(row) };
}

function recordKey({ space_id, record_id }: SaidRow): string {
  return `${space_id} ${record_id}`;
}

function itemKey({ space, digest }: Pick<RecalledPassage, 'space' | 'digest'>): string {
  return `${digest} ${space}`;
}
