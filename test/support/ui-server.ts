import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EventStreams, LiveRequests } from '../../src/local/ui/live-requests.ts';
import { UiServer } from '../../src/local/ui/ui-server.ts';
import type { UiDoor } from '../../src/local/ui-door.ts';
import type { UiRoute } from '../../src/local/ui/ui-routes.ts';
import { InFlight } from '../../src/proxy/in-flight.ts';
import { onTestFinished } from 'vitest';
import { AUTHORIZED, startServer, type TestServer } from './local-server.ts';
import { manualClock } from './manual-clock.ts';
import { tempFolder } from './temp-folder.ts';

/** The listener with a page behind it, under a clock of the test's. */
export interface UiStage {
  readonly running: TestServer;
  readonly inFlight: InFlight;
  readonly door: UiDoor;
  /** Milliseconds that have passed. */
  advance(ms: number): void;
  /** The code of a new link, as `svc ui` asks for it. */
  newCode(): Promise<string>;
  /** Opens a session as the page does. */
  open(): Promise<UiCredentials>;
  /** The headers of the page's own calls. */
  headersOf(credentials: UiCredentials): readonly string[];
}

export interface UiCredentials {
  readonly cookie: string;
  readonly secret: string;
}

const ROUTES: readonly UiRoute[] = [['GET about', async () => ({ version: '0.1.2' })]];

export async function startUiStage(routes = ROUTES): Promise<UiStage> {
  const clock = manualClock();
  const files = tempFolder();
  mkdirSync(files, { recursive: true });
  writeFileSync(join(files, 'app-ABCDEFGH.js'), 'void 0;');
  writeFileSync(join(files, 'app-HGFEDCBA.css'), 'body{}');
  writeFileSync(join(files, 'secret.txt'), 'nobody may read this');
  const inFlight = new InFlight();
  const door = new UiServer({
    files,
    routes,
    streams: new EventStreams(new LiveRequests(inFlight)),
    clock,
  });
  const running = await startServer(undefined, {}, door);
  onTestFinished(() => running.close());
  const own = `Origin: http://127.0.0.1:${running.port}`;
  const newCode = async (): Promise<string> => {
    const headers = [AUTHORIZED, 'Content-Type: application/json'];
    const answer = await running.ask({ target: '/svc/ui-link', headers, body: '{}' });
    const { link } = JSON.parse(answer.body) as { link: string };
    return link.slice('/svc/ui#link='.length);
  };
  return {
    running,
    inFlight,
    door,
    newCode,
    advance: (ms) => clock.goOn(ms),
    open: async () => {
      const body = JSON.stringify({ code: await newCode() });
      const headers = [own, 'Content-Type: application/json'];
      const answer = await running.ask({ target: '/svc/ui/api/session', headers, body });
      const { secret } = JSON.parse(answer.body) as { secret: string };
      const line = answer.headers.get('set-cookie') ?? '';
      return { secret, cookie: line.slice(0, line.indexOf(';')) };
    },
    headersOf: ({ cookie, secret }) => [
      `Cookie: ${cookie}`,
      `x-svc-ui-secret: ${secret}`,
      'Sec-Fetch-Site: same-origin',
    ],
  };
}
