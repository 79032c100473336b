import type { CommandContext } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';
import { startForClient } from './start-for-client.ts';

export interface TokenOptions {
  /** Start the proxy where none listens. */
  readonly start?: boolean;
}

/** `svc config token`: the token and a line end, nothing else. `script` is this program. */
export async function printToken(
  options: TokenOptions,
  context: CommandContext,
  script: string,
): Promise<void> {
  const access = await loadAccess(context.environment);
  if (options.start === true) await startForClient(access, context, script);
  context.terminal.out(access.localToken);
}
