import { randomBytes } from 'node:crypto';
import type { MasterKeys } from '../../src/ports/vault-store.ts';

/** Master keys in memory, which a test may take away or change. */
export class TestMasterKeys implements MasterKeys {
  readonly #keys = new Map<string, Uint8Array>();

  constructor(...ids: readonly string[]) {
    for (const id of ids) this.#keys.set(id, randomBytes(32));
  }

  find = async (id: string): Promise<Uint8Array | undefined> => this.#keys.get(id);

  /** Returns the key that was there. */
  set(id: string, key: Uint8Array | undefined = randomBytes(32)): Uint8Array | undefined {
    const before = this.#keys.get(id);
    this.#keys.set(id, key);
    return before;
  }

  take(id: string): Uint8Array | undefined {
    const key = this.#keys.get(id);
    this.#keys.delete(id);
    return key;
  }
}

export const [FIRST, SECOND] = ['mk_00000001', 'mk_00000002'] as const;
