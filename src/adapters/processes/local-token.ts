import { randomBytes } from 'node:crypto';

/** Creates a local token: 32 random bytes, with a prefix by which secret scanners recognise it. */
export function createLocalToken(): string {
  return `svc_local_${randomBytes(32).toString('base64url')}`;
}
