import { randomBytes } from 'node:crypto';
import {
  formatServiceKey,
  PUBLIC_BYTES,
  parseServiceKey,
  SECRET_BYTES,
} from '../../../src/core/memory-api/service-key.ts';
import type { AdminRole } from '../../src/core/admins.ts';
import { hashKey } from '../../../src/core/memory-api/keys.ts';
import { manualClock } from '../../../test/support/manual-clock.ts';
import {
  callService,
  type ServiceAnswer,
  startMemoryService,
  type TestService,
  type TestServiceOptions,
} from './memory-service.ts';
import { noteOfTest } from './service-control.ts';

/** A service on a real socket with the token of an operator, and calls of its console. */

export interface AskOptions {
  /** Instead of the operator's; undefined where it is named: none. */
  readonly key?: string | undefined;
  readonly tenant?: string;
}

export interface OpenedConsole {
  readonly service: TestService;
  readonly token: string;
  readonly clock: ReturnType<typeof manualClock>;
  /** Rejects an answer that the published contract does not know. */
  readonly ask: (
    /** `GET keys` */
    call: string,
    body?: unknown,
    options?: AskOptions,
  ) => Promise<ServiceAnswer>;
  readonly askMemory: (path: string, key: string, body?: unknown) => Promise<ServiceAnswer>;
  readonly tokenOf: (role: AdminRole, tenant?: string) => Promise<string>;
}

export async function openConsole(given: TestServiceOptions = {}): Promise<OpenedConsole> {
  const clock = manualClock();
  const service = await startMemoryService({ clock, ...given });
  const tokenOf = async (role: AdminRole, tenant = 'default'): Promise<string> => {
    const token = formatServiceKey(
      randomBytes(PUBLIC_BYTES),
      randomBytes(SECRET_BYTES),
      'svc_admin',
    );
    const admin = {
      adminId: parseServiceKey(token, 'svc_admin')?.publicId ?? '',
      ...(role === 'operator' ? {} : { tenant }),
      name: role,
      role,
      hash: hashKey(service.pepper, token),
      createdAt: 1,
    };
    await service.store.apply({ what: 'admin.add', admin }, noteOfTest('admin.created'));
    return token;
  };
  const token = await tokenOf('operator');
  return {
    service,
    token,
    clock,
    tokenOf,
    ask: (call, body, options = {}) => {
      const [method = '', path = ''] = call.split(' ');
      const { tenant } = options;
      const key = 'key' in options ? options.key : token;
      return callService(service.url, `/v1/svc/console/${path}`, {
        method,
        ...(body === undefined ? {} : { body }),
        ...(key === undefined ? {} : { key }),
        ...(tenant === undefined ? {} : { headers: { 'x-svc-tenant': tenant } }),
      });
    },
    askMemory: (path, key, body) =>
      callService(service.url, `/v1/svc/${path}`, { key, ...(body === undefined ? {} : { body }) }),
  };
}
