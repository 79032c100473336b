import type { CommandContext } from '../context.ts';
import { loadAccess } from '../setup/load-config.ts';

/** `svc config token`: the token and a line end, nothing else. */
export async function printToken({ environment, terminal }: CommandContext): Promise<void> {
  const { localToken } = await loadAccess(environment);
  terminal.out(localToken);
}
