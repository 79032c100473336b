import type { WhoAmI } from '../../core/memory-api/contract.ts';
import { PROOF_FEATURE } from '../../core/memory-api/words.ts';
import { mayUse } from '../../core/memory-api/keys.ts';
import { GLOBAL_SPACE } from '../../core/request/space.ts';
import type { MemorySupport } from '../../ports/memory.ts';
import { isKeyRefused, type ServiceGate } from './gate.ts';
import type { Operations } from './operations.ts';
import { ServiceFault } from './service-link.ts';

/**
 * Knows the rights of the service key. It asks the service at the start and every few minutes, and removes a right at
 * once when a call is refused because the key lacks that right. Before the first answer all rights count as given.
 */

const REFRESH_MS = 300_000;
/** Pause until the next attempt while the service does not answer. */
const FIRST_MS = 15_000;

export interface KeyIdentityParts {
  readonly operations: Operations;
  readonly gate: ServiceGate;
  report(line: string): void;
  /** Called after each answer of the service about the key. It must not reject. */
  onHeard(signal: AbortSignal): Promise<void>;
  /** Called with the tenant that the key belongs to, before onHeard(). */
  onTenant(tenant: string): void;
}

export class KeyIdentity {
  readonly #parts: KeyIdentityParts;
  readonly #closing = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #scopes: { readonly read: boolean; readonly write: boolean } = { read: true, write: true };
  #hasProofs = true;
  #mayShare = true;
  #wasDenied = false;

  constructor(parts: KeyIdentityParts) {
    this.#parts = parts;
    parts.operations.onRefused = (error, access) => this.#refused(error, access);
  }

  get supports(): MemorySupport {
    return { kind: 'hosted', ...this.#scopes };
  }

  /** True if the service can prove what it stores. Without proofs svc leaves nothing out of prompts. */
  get proves(): boolean {
    return this.#hasProofs;
  }

  /** True if the key may read the global space. */
  get mayShare(): boolean {
    return this.#mayShare;
  }

  /** Records that the service has refused the global space to this key. */
  notShared(): void {
    this.#mayShare = false;
  }

  /** Asks now, and then at intervals. Resolves after the first attempt; never rejects. */
  async watch(): Promise<void> {
    const isHeard = await this.#refresh();
    if (this.#closing.signal.aborted) return;
    this.#timer = setTimeout(() => void this.watch(), isHeard ? REFRESH_MS : FIRST_MS);
    this.#timer.unref();
  }

  close(): void {
    this.#closing.abort();
    clearTimeout(this.#timer);
  }

  /** Asks the service about the key. Returns false without an answer in the service's form, or if it is unavailable. */
  async #refresh(): Promise<boolean> {
    const { signal } = this.#closing;
    try {
      this.#heard(await this.#parts.operations.whoAmI(signal));
    } catch (error) {
      return error instanceof ServiceFault && error.reason !== 'unavailable';
    }
    void this.#parts.onHeard(signal);
    return true;
  }

  #refused(error: unknown, access: 'read' | 'write'): void {
    if (!(error instanceof ServiceFault)) return;
    if (error.code === 'SCOPE_DENIED') this.#scopes = { ...this.#scopes, [access]: false };
    else if (isKeyRefused(error.code)) this.#denied();
  }

  #heard({ tenant_id: tenant, key, features }: WhoAmI): void {
    this.#parts.onTenant(tenant);
    this.#scopes = { read: key.scopes.includes('read'), write: key.scopes.includes('write') };
    this.#hasProofs = features.includes(PROOF_FEATURE);
    const { spaces } = key;
    this.#mayShare = mayUse(spaces === undefined ? {} : { spaces }, GLOBAL_SPACE);
    this.#wasDenied = false;
    this.#parts.gate.open();
  }

  #denied(): void {
    if (this.#wasDenied) return;
    this.#wasDenied = true;
    this.#parts.report(
      'The memory service refuses the service key, so requests continue without memory. Check with: svc doctor',
    );
  }
}
