import type { ServiceParts, ServingParts } from './parts.ts';
import { Signer } from './signer.ts';
import { Vault } from './vault.ts';

export type VaultNeeds = Pick<
  ServiceParts,
  'store' | 'pepper' | 'randomBytes' | 'clock' | 'masterKeys'
>;

/** The dependencies with the vault and the signer that are built on them. */
export function withVault<Parts extends VaultNeeds>(
  parts: Parts,
): Parts & Pick<ServingParts, 'vault' | 'signer'> {
  const { store, clock } = parts;
  const vault = new Vault(parts);
  return { ...parts, vault, signer: new Signer({ store, vault, clock }) };
}
