import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { tempFolder } from './cli.ts';

/** A fresh home with this configuration in it; a text is written as it is. */
export function homeWith(config: unknown, folder = '.config/svc'): string {
  const home = tempFolder();
  const path = join(home, folder);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  writeFileSync(join(path, 'config.json'), text, { mode: 0o600 });
  return home;
}
