import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UI_PATH } from '../../core/http/ui-gate.ts';

/** A file of the page. svc reads it at each request, so that a page that nobody opens takes no memory. */
interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  /** True if the file's name contains a hash of its content, so that browsers may cache it. */
  readonly isHashed: boolean;
}

const NAME = /^app-[A-Za-z0-9]{6,32}\.(js|css)$/;
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};

/** Returns a file of the page; undefined for any other path, or if the file cannot be read. */
export async function readPageFile(folder: string, path: string): Promise<PageFile | undefined> {
  if (path === UI_PATH || path === `${UI_PATH}/`) return shell(folder);
  const name = path.slice(UI_PATH.length + 1);
  const [, ending = ''] = NAME.exec(name) ?? [];
  const type = TYPES[ending];
  if (type === undefined) return undefined;
  const body = await readFile(join(folder, name)).catch(() => undefined);
  return body === undefined ? undefined : { type, body, isHashed: true };
}

async function shell(folder: string): Promise<PageFile> {
  const names = await readdir(folder).catch((): string[] => []);
  const nameOf = (ending: string): string =>
    names.find((name) => NAME.exec(name)?.[1] === ending) ?? `missing.${ending}`;
  const body = Buffer.from(SHELL(nameOf('css'), nameOf('js')));
  return { type: 'text/html; charset=utf-8', body, isHashed: false };
}

const SHELL = (style: string, script: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>svc</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${UI_PATH}/${style}">
<script defer src="${UI_PATH}/${script}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. Everything that it shows is also in the terminal: svc --help</noscript>
</body>
</html>
`;

/** The page's Content-Security-Policy. It forbids inline code, other hosts, frames, and texts that become markup. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** The headers of every answer of the page's own server (ui-server.ts). */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
};
