import { dataFolder } from '../../adapters/files/data-folder.ts';
import { parseServiceUrl } from '../../core/settings/config-upstreams.ts';
import { Findings, namedVariable } from '../../core/settings/config-values.ts';
import { type NetworkProxy, readNetworkProxy } from '../../core/settings/network-proxy.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { askNext, askSecret } from './wizard-secret.ts';
import type { Answers } from './wizard-answers.ts';
import { input, select } from './wizard-prompts.ts';
import { isOwnMachineUrl } from '../../core/settings/own-machine.ts';
import { type KeyCheck, meaningOf } from '../doctor/key-check.ts';
import { MemoryError } from '../../core/errors.ts';

/** Where memories live: on this machine, or with a service that several machines share. */

/** Undefined when nothing changes. */
export async function askMemory(answers: Answers): Promise<Draft | undefined> {
  const { draft, context, dependencies } = answers;
  const memory = isRecord(draft['memory']) ? draft['memory'] : {};
  const kind = await select(
    {
      message: 'Where should memories be stored?',
      default: memory['kind'] === 'hosted' ? 'hosted' : 'embedded',
      choices: [
        {
          value: 'embedded',
          name: 'On this machine',
          description: `one SQLite file in ${dataFolder(context.environment)}; no account`,
        },
        {
          value: 'hosted',
          name: 'With a memory service',
          description: 'for several machines or a team; needs a URL and a service key',
        },
      ] as const,
    },
    dependencies.streams,
  );
  if (kind === 'embedded') return memory['kind'] === 'hosted' ? { kind } : undefined;
  return askService(memory, answers);
}

async function askService(memory: Draft, answers: Answers): Promise<Draft | undefined> {
  const { streams } = answers.dependencies;
  const before = typeof memory['baseUrl'] === 'string' ? { default: memory['baseUrl'] } : {};
  const baseUrl = await input(
    {
      message: 'Base URL of the memory service:',
      ...before,
      validate: (text) => {
        const parsed = parseServiceUrl(text, true);
        return 'allowed' in parsed ? `Expected ${parsed.allowed}.` : true;
      },
    },
    streams,
  );
  for (;;) {
    const question = {
      message: 'Where is its service key?',
      direct: 'The service key:',
      stored: memory['serviceKey'],
      offered: ['SVC_SERVICE_KEY'],
    };
    const answer = await askSecret(question, answers);
    if (answer.kind === 'back') return undefined;
    const serviceKey = answer.kind === 'key' ? answer.key : memory['serviceKey'];
    // An address of the person's own network, typed as such, is meant as such.
    const isOwn = 'allowed' in parseServiceUrl(baseUrl);
    const isKept = memory['baseUrl'] === baseUrl && memory['allowPrivate'] === true;
    const isSame = memory['baseUrl'] === baseUrl && memory['proxy'] !== undefined;
    const place = {
      baseUrl,
      ...(isOwn || isKept ? { allowPrivate: true } : {}),
      ...(isSame ? { proxy: memory['proxy'] } : {}),
    };
    const next = await judge({ ...place, serviceKey }, answers);
    if (next === 'leave') return undefined;
    if (next === 'keep') return { kind: 'hosted', ...place, serviceKey };
  }
}

async function judge(
  draft: Omit<ServicePlace, 'serviceKey' | 'proxy'> & Readonly<Record<'serviceKey', unknown>>,
  answers: Answers,
): Promise<'keep' | 'again' | 'leave'> {
  const { terminal, environment } = answers.context;
  const key = resolved(draft.serviceKey, environment);
  if (key === undefined) {
    terminal.note('The key is not set in this shell, so svc cannot test it. svc start needs it.');
    return 'keep';
  }
  const item: Record<string, unknown> = { ...draft };
  const at = { path: 'memory', item, environment, findings: new Findings() };
  const proxy = readNetworkProxy(at, draft.baseUrl);
  const { baseUrl, allowPrivate = false } = draft;
  const place = { baseUrl, allowPrivate, ...(proxy === undefined ? {} : { proxy }) };
  terminal.note(`Testing the key: asking ${new URL(baseUrl).host} what it may do …`);
  const { state, found } = await checkService({ ...place, serviceKey: key });
  if (state === 'accepted') {
    terminal.note(`ok: memory service: ${found}.`);
    return 'keep';
  }
  terminal.warn(`memory service: ${found}.`);
  return askNext(
    { isRefused: state === 'refused', leave: 'Keep the present memory setting' },
    answers,
  );
}

function resolved(
  credential: unknown,
  environment: Answers['context']['environment'],
): string | undefined {
  if (typeof credential === 'string') return credential;
  const name = namedVariable(credential);
  return name === undefined ? undefined : environment[name] || undefined;
}

/**
 * Whether a hosted memory can be reached and takes its key. It makes the proxy's own call at its
 * start, and reads the answer as the proxy does. Only names of scopes in the answer are shown.
 */

interface ServicePlace {
  readonly baseUrl: string;
  readonly serviceKey: string;
  readonly allowPrivate?: boolean;
  readonly proxy?: NetworkProxy;
}

// A memory that needs seconds would be left out of every request.
const ANSWER_MS = 5000;
const WHO = 'the memory service';

async function checkService(place: ServicePlace): Promise<KeyCheck> {
  const { baseUrl, serviceKey, proxy } = place;
  const allowPrivate = place.allowPrivate === true || isOwnMachineUrl(baseUrl);
  const { openHostedMemory } = await import('../../adapters/memory-client/open-hosted-memory.ts');
  const service = openHostedMemory({
    settings: {
      kind: 'hosted',
      baseUrl,
      serviceKey,
      allowPrivate,
      ...(proxy === undefined ? {} : { proxy }),
    },
    recallMs: ANSWER_MS,
    report: () => undefined,
  });
  const from = performance.now();
  try {
    const { key } = await service.operations.whoAmI(AbortSignal.timeout(ANSWER_MS));
    const ms = Math.round(performance.now() - from);
    const may = key.scopes.length === 0 ? 'nothing' : key.scopes.join(', ');
    return { state: 'accepted', found: `the key is accepted and may: ${may}; ${ms} ms` };
  } catch (error) {
    if (error instanceof MemoryError) return checkOf(error);
    throw error;
  } finally {
    await service.close();
  }
}

function checkOf({ reason, message }: MemoryError): KeyCheck {
  switch (reason) {
    case 'denied':
      return { state: 'refused', found: `${WHO} refuses the service key, or blocks it` };
    case 'invalid':
      return {
        state: 'unknown',
        found: 'the program at this address is not a memory service: is the URL right?',
      };
    case 'rate_limited':
      return { state: 'unknown', found: `${WHO} answers, but limits this key now` };
    case 'timeout':
      return { state: 'unreachable', found: `${WHO} does not answer in time` };
    case 'unavailable':
  }
  // The link says nothing else in brackets than what the system or a contract calls the failure.
  const code = /\(([A-Z][A-Z0-9_]+)\)/.exec(message)?.[1];
  const isRefused = code === 'SVC_ADDRESS_REFUSED' || message.includes('is not allowed');
  if (isRefused) {
    const found = 'its address is private, which svc uses only if you allow it';
    return { state: 'not_allowed', found };
  }
  if (code === undefined || message.includes('refused')) {
    return { state: 'unknown', found: `${WHO} has a fault` };
  }
  return { state: 'unreachable', found: meaningOf(code) };
}
