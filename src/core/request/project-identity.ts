import { createHash } from 'node:crypto';
import { folderSpace } from './space.ts';

/**
 * Names a project by the address of its `origin`, so that clones and machines agree. The many ways in
 * which people write one address are one identity, and no credential in it is kept.
 */

const URL_CHARS_MAX = 2048;
const DEFAULT_PORTS: ReadonlySet<string> = new Set(['22', '80', '443', '9418']);

/** `host/path` in small letters; undefined for a path of this machine and for what is no address. */
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
