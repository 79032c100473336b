import { urlOf } from '../listing.ts';
import type { CommandContext } from '../context.ts';
import { requireConfigFile, settingsOf, warnOf } from '../setup/load-config.ts';
import { ensureProxy, type ProxyProcess } from './proxy-process.ts';
import { prepareConfig, type StartOptions } from './start.ts';

/** `svc start --detach`: comes back when the proxy in the background serves. */
export async function startDetached(
  options: StartOptions,
  context: CommandContext,
  parts: ProxyProcess,
): Promise<void> {
  const { environment, terminal } = context;
  await prepareConfig(context);
  // Wrong settings are reported here and now, not in a log.
  const file = await requireConfigFile(environment);
  warnOf(settingsOf(file, environment, options.flags).warnings, terminal);
  const { proxy, isNew } = await ensureProxy(options.flags, context, parts);
  const { host, port, pid } = proxy;
  const url = urlOf(proxy);
  if (options.json === true) terminal.out(JSON.stringify({ url, host, port, pid }));
  if (options.quiet === true) return;
  const what = isNew ? `svc listens on ${url}` : `svc runs already, on ${url}`;
  terminal.note(`${what} (process ${pid}). Stop it with: svc stop`);
}
