import type { KeyRow as FileKeyRow } from '../service-store/keys.ts';

/** A key's row, which has its tenant under another name here. */
export type KeyRow = Omit<FileKeyRow, 'tenant'> & { readonly tenant_id: string };

export function keyRowOf({ tenant_id: tenant, ...row }: KeyRow): FileKeyRow {
  return { ...row, tenant };
}
