import { isAbsolute, join } from 'node:path';
import type { Environment } from '../../core/settings/config-values.ts';
import type { ClientFileForm } from './client-file.ts';
import { clientHome } from './client-home.ts';
import { jsonSettings, type JsonSetting } from './json-settings.ts';

/** Claude Code's settings.json. */
export function claudeFile(
  environment: Environment,
  settings: readonly JsonSetting[],
): ClientFileForm {
  const own = environment['CLAUDE_CONFIG_DIR'] ?? '';
  const folder = isAbsolute(own) ? own : join(clientHome(environment), '.claude');
  const path = join(folder, 'settings.json');
  const command = 'svc print-config claude';
  return jsonSettings({ path, command, settings, refusesComments: 'Claude Code' });
}
