import { randomBytes } from 'node:crypto';

/** Makes a new local token: 32 random bytes (R4). The prefix lets a secret scanner recognise it. */
export function createLocalToken(): string {
  return `svc_local_${randomBytes(32).toString('base64url')}`;
}
