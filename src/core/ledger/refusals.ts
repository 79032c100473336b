import type { RequestView } from '../conversation/view.ts';
import type {
  AddressOf,
  ConversationOwner,
  EntryOf,
  RefusedChange,
  ScopeOwner,
} from './entries.ts';
import type { FoundEntries } from './found-entries.ts';

/** The provider refused a changed request: this kind of change is off for its conversation. */

/** After an hour another provider, model or account may take what this one refused. */
const REFUSAL_MS = 3_600_000;

export interface RefusalPlace extends ConversationOwner, ScopeOwner {
  /** The client names its conversation; otherwise its key was derived from the first words. */
  readonly isStated: boolean;
}

type RefusalAddress = AddressOf<'refusal' | 'refusal-at'>;

/**
 * Where refusals that hold for this request are found. A conversation without an id is identified
 * by its prompts, so a conversation with the same beginning does not inherit its refusal.
 */
export function refusalAddresses(
  view: RequestView,
  place: RefusalPlace,
  change: RefusedChange,
): readonly RefusalAddress[] {
  const { tenant, scope, conversation } = place;
  if (place.isStated) return [{ kind: 'refusal', change, tenant, conversation }];
  const addresses: RefusalAddress[] = [];
  for (let at = view.items.at(-1)?.soFar.humans; at !== undefined; at = at.before) {
    const fingerprint = view.items[at.index]?.fingerprint;
    if (fingerprint === undefined) continue;
    addresses.push({ kind: 'refusal-at', change, tenant, scope, fingerprint });
  }
  return addresses;
}

/** The ledger entries of a refusal: it belongs to the newest prompt. */
export function refusalEntries(
  addresses: readonly RefusalAddress[],
  at: number,
): readonly EntryOf<'refusal' | 'refusal-at'>[] {
  return addresses.slice(0, 1).map((address) => ({ ...address, at }));
}

export function isRefused(
  addresses: readonly RefusalAddress[],
  found: FoundEntries,
  now: number,
): boolean {
  return addresses.some((address) => {
    const entry = found.get(address);
    return entry !== undefined && now - entry.at < REFUSAL_MS;
  });
}
