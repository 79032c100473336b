import type { Draft } from '../../core/settings/config-draft.ts';
import { isEnvironmentName } from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { Credential } from '../../core/settings/settings.ts';
import type { CommandContext } from '../context.ts';
import { choice, readKey, usage } from './setup-upstream.ts';

/** From the flags of `svc setup` to where memories live. A service key is never among the flags. */

export interface MemoryFlags {
  readonly memory?: string;
  readonly memoryUrl?: string;
  /** The name of an environment variable: the file then names it too, and holds no key. */
  readonly serviceKeyEnv?: string;
  readonly serviceKeyStdin?: boolean;
  /** The service has an address of the person's own network. */
  readonly memoryAllowPrivate?: boolean;
}

/** Undefined: no change. Values that the flags do not set are kept from the file. */
export async function chooseMemory(
  flags: MemoryFlags,
  draft: Draft,
  context: CommandContext,
): Promise<Draft | undefined> {
  const kind = choice('--memory', flags.memory, ['embedded', 'hosted']);
  const { memoryUrl, serviceKeyEnv, serviceKeyStdin, memoryAllowPrivate } = flags;
  const about = [memoryUrl, serviceKeyEnv, serviceKeyStdin, memoryAllowPrivate];
  const isAboutService = about.some((it) => it !== undefined);
  if (kind === undefined && !isAboutService) return undefined;
  const before = isRecord(draft['memory']) ? draft['memory'] : {};
  if ((kind ?? before['kind'] ?? 'embedded') === 'embedded') {
    if (!isAboutService) return { kind: 'embedded' };
    throw usage('A URL and a service key need --memory hosted.');
  }
  const baseUrl = memoryUrl ?? before['baseUrl'];
  const serviceKey = (await keyOf(flags, context)) ?? before['serviceKey'];
  if (baseUrl === undefined) throw usage('Where is the memory service? Give --memory-url.');
  if (serviceKey === undefined) {
    throw usage(
      'Where is the service key?',
      'Give --service-key-env SVC_SERVICE_KEY (the file then names the variable), or --service-key-stdin.',
    );
  }
  // Another address is another promise: what was said of the old one does not hold for it.
  const isSame = baseUrl === before['baseUrl'];
  const allowPrivate = memoryAllowPrivate ?? (isSame ? before['allowPrivate'] : undefined);
  return {
    kind: 'hosted',
    baseUrl,
    serviceKey,
    ...(allowPrivate === undefined ? {} : { allowPrivate }),
    ...(isSame && before['proxy'] !== undefined ? { proxy: before['proxy'] } : {}),
  };
}

async function keyOf(
  { serviceKeyEnv, serviceKeyStdin }: MemoryFlags,
  { stdin }: CommandContext,
): Promise<Credential | undefined> {
  if (serviceKeyEnv !== undefined && serviceKeyStdin === true) {
    throw usage('--service-key-env and --service-key-stdin exclude each other.');
  }
  if (serviceKeyStdin === true) return readKey(stdin, '--service-key-stdin');
  if (serviceKeyEnv === undefined) return undefined;
  if (isEnvironmentName(serviceKeyEnv)) return { env: serviceKeyEnv };
  throw usage('--service-key-env: expected the name of an environment variable, not a key.');
}
