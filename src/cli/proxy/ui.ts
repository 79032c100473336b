import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { dataFolder } from '../../adapters/files/own-folders.ts';
import { replaceFile } from '../../adapters/files/replace-file.ts';
import { asRecord, parseJson } from '../../core/bytes/json-fields.ts';
import { UI_LINK_PATH } from '../../core/http/routes.ts';
import { urlOf } from '../listing.ts';
import { CliError } from '../cli-error.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import type { Call } from '../context.ts';
import { ensureProxy } from './proxy-process.ts';

/**
 * Runs `svc ui`: starts the proxy if none runs, prints a one-time link to its page, and opens it where a browser can.
 */

interface UiOptions {
  readonly open?: boolean;
  readonly print?: boolean;
}

export async function showUi({ options, context }: Call<UiOptions>): Promise<void> {
  const { terminal, environment } = context;
  if (options.open === true && options.print === true) {
    throw new CliError('--open and --print exclude each other.', 'See: svc ui --help', 2);
  }
  const { proxy, proxies, isNew } = await ensureProxy({}, context);
  if (isNew && options.print !== true) {
    terminal.note(`svc listens on ${urlOf(proxy)}; stop it with: svc stop`);
  }
  const answer = await proxies.call(proxy, { path: UI_LINK_PATH, body: '{}' });
  const path = answer?.status === 200 ? linkIn(answer.body) : undefined;
  if (path === undefined) {
    throw new CliError(
      'The running proxy does not serve the page.',
      'The configuration has "ui": false, or the proxy is older than this svc. For an older proxy: svc stop && svc ui',
    );
  }
  const link = urlOf(proxy) + path;
  terminal.out(link);
  if (options.print === true) return;
  terminal.note('The link works once, within a minute.');
  const folder = dataFolder(environment);
  if (options.open === true) await openPage(link, folder);
  // Without --open a browser that does not start is no error, because the user has the link.
  else if (terminal.isWatched && hasScreen(environment)) {
    await openPage(link, folder).catch(() => undefined);
  }
}

/** Says whether a browser can open here. Over SSH it would open on the remote machine, or inside the terminal. */
function hasScreen(environment: Environment): boolean {
  const isSet = (name: string): boolean => Boolean(environment[name]);
  if (isSet('SSH_CONNECTION') || isSet('CI')) return false;
  return process.platform in OPENERS || isSet('DISPLAY') || isSet('WAYLAND_DISPLAY');
}

function linkIn(body: string): string | undefined {
  const { link } = asRecord(parseJson(body));
  return typeof link === 'string' && /^\/svc\/ui#link=[\w-]{43}$/.test(link) ? link : undefined;
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
};

/**
 * Opens the page in a browser. The browser gets the path of a private file that contains the link, because other users
 * can read the arguments of a process and must not get the link.
 */
async function openPage(link: string, folder: string): Promise<void> {
  const file = join(folder, 'ui-open.html');
  const text = `<!doctype html><meta charset="utf-8"><title>svc</title><meta http-equiv="refresh" content="0; url=${link}"><p><a href="${link}">svc</a></p>\n`;
  await replaceFile(file, text, { isSynced: false });
  const [program = '', ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const failed = new CliError('No browser could be started.', 'Open the link above yourself.');
  await new Promise<void>((resolve, reject) => {
    const child = spawn(program, [...args, file], { stdio: 'ignore', detached: true });
    child.on('error', () => reject(failed));
    child.on('spawn', () => {
      child.unref();
      resolve();
    });
  });
}
