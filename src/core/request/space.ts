import { createHash } from 'node:crypto';
import { ProxyError } from '../errors.ts';
import { headerCount, headerOf, type RawHeaders } from '../http/header-rules.ts';

/** Memories of the user's own choice that every project may recall. */
export const GLOBAL_SPACE = 'global';

/** The space in which svc's own checks write; their requests are not a person's work. */
export const PROBE_SPACE = 'svc-doctor';

/** Where a request without a project belongs. */
export const DEFAULT_SPACE = 'default';

export const SPACE_HEADER = 'x-svc-memory-space';

// The pattern of the memory service's contract, so that a space means the same in both stores.
const SPACE = /^[a-z0-9][a-z0-9._/-]{0,127}$/;

const SLUG_CHARS_MAX = 40;
// 10 hexadecimal digits are 40 bits: among a person's thousand projects a clash has odds of 1 in 2 million.
const HASH_CHARS = 10;

/**
 * Where texts of clients go whose folder svc did not understand. Nothing recalls from there; a person
 * may merge it into a project.
 */
const UNPLACED_SPACES = 'unplaced/';

export function isUnplaced(space: string): boolean {
  return space.startsWith(UNPLACED_SPACES);
}

interface StatedPlace {
  readonly folder: string | undefined;
  readonly client: string;
  /** The client states a folder in every conversation. */
  readonly statesFolder: boolean;
}

/**
 * The space that a request's memories belong to: the header x-svc-memory-space, else the project
 * folder that the client states, else 'default'. Throws MODE_INVALID on a header that is no space.
 */
export function spaceOf(
  headers: RawHeaders,
  { folder, client, statesFolder }: StatedPlace,
): string {
  const stated = headerOf(headers, SPACE_HEADER);
  if (stated !== undefined) {
    if (isSpace(stated) && headerCount(headers, SPACE_HEADER) === 1) return stated;
    throw new ProxyError(
      'MODE_INVALID',
      'The header x-svc-memory-space must be given once: 1 to 128 of a-z 0-9 . _ / - with a letter or digit first.',
    );
  }
  if (folder !== undefined && folder !== '') return folderSpace(folder);
  return statesFolder ? `${UNPLACED_SPACES}${client}` : DEFAULT_SPACE;
}

export function isSpace(name: string): boolean {
  return SPACE.test(name);
}

/** Readable and unique: two projects with the same folder name never share a space. */
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

const URL_CHARS_MAX = 2048;
const DEFAULT_PORTS: ReadonlySet<string> = new Set(['22', '80', '443', '9418']);

/**
 * Names a project by the address of its `origin`, so that clones and machines agree. The many ways in which people
 * write one address are one identity, and no credential in it is kept. `host/path` in small letters; undefined for a
 * path of this machine and for what is no address.
 */
export function originIdentity(url: string): string | undefined {
  const text = url.trim();
  if (text === '' || text.length > URL_CHARS_MAX || /[\s\0\\]/.test(text)) return undefined;
  const [, host = '', port = '', path = ''] =
    /^[a-z][a-z0-9+.-]*:\/\/(?:[^@/]*@)?(\[[^\]/]*\]|[^:/]+)(?::(\d{1,5}))?\/(.+)$/i.exec(text) ??
    scpForm(text);
  if (host === '' || /^file:/i.test(text)) return undefined;
  const plain = path
    .replace(/[?#].*$/, '')
    .replace(/^[/~]+/, '')
    .replace(/\/+$/, '')
    .replace(/\.git$/i, '')
    .replace(/\/+$/, '');
  if (plain === '') return undefined;
  const place = port === '' || DEFAULT_PORTS.has(port) ? host : `${host}:${port}`;
  return `${place}/${plain}`.toLowerCase();
}

/** `git@host:path`, which is no URL. */
function scpForm(text: string): readonly string[] {
  const [, host = '', path = ''] = /^(?:[^@/:]+@)?([^/:@]+):(?!\/\/)(.+)$/.exec(text) ?? [];
  // One letter is a drive of Windows.
  return host.length < 2 ? [] : ['', host, '', path];
}

/** The space of a project with this identity: its name is readable, its hash unique. */
export function projectSpace(identity: string): string {
  const name = folderSpace(identity).replace(/-[0-9a-f]{10}$/, '');
  const hash = createHash('sha256').update(`origin ${identity}`).digest('hex').slice(0, 10);
  return `${name}-${hash}`;
}
