import { clineClient } from './client-cline.ts';
import { vscodeClient, zedClient } from './client-editors.ts';
import { continueClient } from './client-continue.ts';
import { copilotClient } from './client-copilot.ts';
import { opencodeClient } from './client-opencode.ts';
import { piClient } from './client-pi.ts';
import { qwenClient } from './client-qwen.ts';
import type { OtherClient } from './other-client.ts';

/**
 * The clients beside Claude Code and Codex, one row each: the dialects, the environment, the text for a
 * person to put in, and the file. `core/request/clients.ts` says how a client's requests look.
 */
export const OTHER_CLIENTS: readonly OtherClient[] = [
  opencodeClient,
  piClient,
  qwenClient,
  copilotClient,
  clineClient,
  continueClient,
  zedClient,
  vscodeClient,
];
