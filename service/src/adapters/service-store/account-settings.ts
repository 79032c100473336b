import {
  ACCOUNT_DEFAULTS,
  type AccountSettings,
  type StoredSettings,
} from '../../core/account-settings.ts';
import type { ChangeOutcome } from '../../ports/control-store.ts';
import type { Database } from '../../../../src/adapters/store/database.ts';

export interface SettingsRow {
  readonly version: number;
  readonly settings: string;
}

/** A tenant without a row has the defaults. */
export function settingsOf(row: SettingsRow | undefined): StoredSettings {
  if (row === undefined) return { ...ACCOUNT_DEFAULTS, version: 0 };
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Only the store writes it.
  const saved = JSON.parse(row.settings) as Partial<AccountSettings>;
  return { ...ACCOUNT_DEFAULTS, ...saved, version: row.version };
}

/** Settings of tenants as rows; a tenant without a row has the defaults. */
export class SettingsTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  get(tenant: string): StoredSettings {
    const sql = 'SELECT version, settings FROM account_settings WHERE tenant = ?';
    return settingsOf(this.#database.get<SettingsRow>(sql, tenant));
  }

  put(tenant: string, settings: AccountSettings, ifVersion: number): ChangeOutcome {
    if (this.get(tenant).version !== ifVersion) return 'changed';
    this.#database.run(
      `INSERT INTO account_settings (tenant, version, settings) VALUES (?, ?, ?)
       ON CONFLICT (tenant) DO UPDATE SET version = excluded.version, settings = excluded.settings`,
      tenant,
      ifVersion + 1,
      JSON.stringify(settings),
    );
    return 'done';
  }
}
