import {
  callService,
  type CallOptions,
  type ServiceAnswer,
  startMemoryService,
  type TestService,
  type TestServiceOptions,
} from './memory-service.ts';

/** A memory service with a key, and the calls that most tests make. */

export const SPACE = 'project/api-0123456789';
export const FACT = 'The deploy code word for project Zephyr is marmalade-42.';

export interface Opened {
  readonly service: TestService;
  readonly key: string;
  readonly ask: (path: string, options?: CallOptions) => Promise<ServiceAnswer>;
  readonly capture: (items: readonly object[], more?: object) => Promise<ServiceAnswer>;
  readonly recall: (more: object) => Promise<ServiceAnswer>;
  readonly purge: (scope: object, more?: object) => Promise<ServiceAnswer>;
}

export async function openService(options?: TestServiceOptions): Promise<Opened> {
  const service = await startMemoryService(options);
  const key = await service.makeKey();
  const ask = (path: string, given: CallOptions = {}): Promise<ServiceAnswer> =>
    callService(service.url, `/v1/svc/${path}`, { key, ...given });
  const generous = { 'x-svc-deadline-ms': '10000' };
  return {
    service,
    key,
    ask,
    capture: (items, more = {}) =>
      ask('memory/capture', {
        body: { space: SPACE, if_generation: 'new', items, ...more },
        headers: generous,
      }),
    recall: (more) =>
      ask('memory/recall', { body: { space: SPACE, max_tokens: 512, ...more }, headers: generous }),
    purge: (scope, more = {}) =>
      ask('memory/purges', { body: { space: SPACE, scope, confirm: SPACE, ...more } }),
  };
}

export function statesOf(answer: ServiceAnswer): readonly string[] {
  const { results } = answer.json as { results: { state: string; reason?: string }[] };
  return results.map(({ state, reason }) => (reason === undefined ? state : `${state} ${reason}`));
}
