import { createHash } from 'node:crypto';
import { ProxyError } from '../errors.ts';
import { clientFacts } from './clients.ts';
import { UNPLACED_SPACES } from './space-names.ts';
import { headerCount, headerOf, type RawHeaders } from '../http/header-rules.ts';

/** The space for memories that the user wants in every project. */
export const GLOBAL_SPACE = 'global';

/** The space of the requests with which svc itself checks a provider. */
export const PROBE_SPACE = 'svc-doctor';

/** The space of a request without a project. */
export const DEFAULT_SPACE = 'default';

export const SPACE_HEADER = 'x-svc-memory-space';

/** Matches the name of a space, in svc and in the memory API. */
export const SPACE_NAME = /^[a-z0-9][a-z0-9._/-]{0,127}$/;

const SLUG_CHARS_MAX = 40;
// Hexadecimal digits of the hash: 40 bits. Among a thousand projects, two have the same hash with a chance of 1 in 2
// million.
const HASH_CHARS = 10;

/**
 * Returns the space of a request's memories: that of the header x-svc-memory-space, else that of the client's project
 * folder. Without both it returns an unplaced space for a client that usually states its folder, and 'default' for any
 * other client. Throws MODE_INVALID for an invalid header.
 */
export function spaceOf(headers: RawHeaders, client: string, folder: string | undefined): string {
  const stated = headerOf(headers, SPACE_HEADER);
  if (stated !== undefined) {
    if (isSpace(stated) && headerCount(headers, SPACE_HEADER) === 1) return stated;
    throw new ProxyError(
      'MODE_INVALID',
      'The header x-svc-memory-space must be given once: 1 to 128 of a-z 0-9 . _ / - with a letter or digit first.',
    );
  }
  if (folder !== undefined && folder !== '') return folderSpace(folder);
  return clientFacts(client).statesFolder ? `${UNPLACED_SPACES}${client}` : DEFAULT_SPACE;
}

export function isSpace(name: string): boolean {
  return SPACE_NAME.test(name);
}

/** Returns a readable space. The hash of the whole path keeps projects with the same folder name apart. */
export function folderSpace(folder: string): string {
  const trimmed = folder.replace(/[\\/]+$/, '');
  const name = trimmed.slice(Math.max(trimmed.lastIndexOf('/'), trimmed.lastIndexOf('\\')) + 1);
  const slug = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, '-')
    .replace(/^[^a-z0-9]+/, '')
    .slice(0, SLUG_CHARS_MAX);
  const hash = createHash('sha256').update(trimmed).digest('hex').slice(0, HASH_CHARS);
  return `project/${slug === '' ? 'folder' : slug}-${hash}`;
}
