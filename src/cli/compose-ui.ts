import { fileURLToPath } from 'node:url';
import { findWaiting } from '../adapters/state/waiting-captures.ts';
import { CodeFiles } from '../adapters/projects/code-files.ts';
import { runDoctor } from '../adapters/processes/doctor-run.ts';
import type { EmbeddedStore } from '../adapters/store/embedded-store.ts';
import { rememberOwnSecrets } from '../core/redaction/own-secrets.ts';
import { ownSecretsOf } from '../core/settings/own-secrets.ts';
import type { Settings } from '../core/settings/settings.ts';
import { VERSION, VERSION_AND_BUILD } from '../core/version.ts';
import { EventStreams, LiveRequests } from '../local/ui/live-requests.ts';
import { memoryRoutes, type SpaceChange } from '../local/ui/memory-calls.ts';
import { healthRoutes } from '../local/ui/health-calls.ts';
import { savingsRoutes } from '../local/ui/savings-calls.ts';
import { requestRoutes } from '../local/ui/request-calls.ts';
import { requestPageRoutes } from '../local/ui/request-page.ts';
import { UiRefusal } from '../local/ui/ui-routes.ts';
import { UiServer } from '../local/ui/ui-server.ts';
import type { UiDoor } from '../local/ui-door.ts';
import type { Memory } from '../ports/memory.ts';
import type { About, HealthAnswer, HealthCheck, StoreAnswer } from '../ports/ui-api.ts';
import type { InFlight, KeptRequests } from '../proxy/in-flight.ts';
import { CliError } from './cli-error.ts';
import { scriptPath } from './context.ts';
import { CodeChecker, findStale } from './memory/memory-code.ts';
import { moveSpaceIn } from './memory/spaces.ts';
import { systemClock } from './compose-common.ts';
import type { LiveSettings } from '../proxy/upstream-choice.ts';

/** What the server of the page needs. This file is a bundle, which a proxy loads at the first request of the page. */
export interface UiParts {
  readonly settings: Settings;
  readonly dataFolder: string;
  readonly store: EmbeddedStore;
  readonly memory: Memory;
  readonly inFlight: InFlight;
  readonly kept: KeptRequests;
  readonly live: () => LiveSettings;
}

export function openUi(parts: UiParts): UiDoor {
  const { settings, store, memory, inFlight, kept } = parts;
  maskKeysOf(settings);
  const { requestLog, ledger } = store;
  const desk = settings.memory.kind === 'embedded' ? store.desk : undefined;
  const live = new LiveRequests(inFlight);
  const startedAt = Math.round(Date.now() - performance.now());
  const about: About = { version: VERSION, startedAt };
  return new UiServer({
    files: pageFolder(),
    clock: systemClock,
    streams: new EventStreams(live),
    routes: [
      ...requestRoutes({ about, live, requestLog, memory, desk, now: () => Date.now() }),
      ...memoryRoutes({
        memory,
        desk,
        sightings: (refs) => store.desk.sightings(refs),
        now: () => Date.now(),
        settings: () => parts.live().proxy,
        moveSpace: (change) => moveInStore(change, parts),
        stale: (space) => staleIn(space, parts),
      }),
      ...savingsRoutes(requestLog, () => Date.now()),
      ...healthRoutes({ check: (isLive) => checkHealth(isLive), store: () => storeFacts(parts) }),
      ...requestPageRoutes({ requestLog, memory, ledger, kept }),
    ],
  });
}

/** Lets this bundle mask the user's keys, because it has its own copy of the code that masks. */
export function maskKeysOf(settings: Settings): void {
  rememberOwnSecrets(ownSecretsOf(settings));
}

/** Deadlines of `svc doctor`, in milliseconds: without --live, and with --live, which also sends model requests. */
const CHECK_MS = 45_000;
const LIVE_MS = 140_000;

async function checkHealth(isLive: boolean): Promise<HealthAnswer> {
  const checks = await runDoctor({
    script: scriptPath(),
    args: isLive ? ['--live', '--yes'] : [],
    environment: process.env,
    deadlineMs: isLive ? LIVE_MS : CHECK_MS,
  });
  if (checks !== undefined) return { at: Date.now(), checks: checks.map(withoutKeys) };
  throw new UiRefusal(503, 'late', 'The checks did not end in time. In a terminal: svc doctor');
}

/** Removes the ends of keys, with which doctor tells keys apart in a terminal. A page must not get them. */
function withoutKeys(check: HealthCheck): HealthCheck {
  return { ...check, found: check.found.replaceAll(/key: …\S+/g, 'a key is set') };
}

async function storeFacts({ store, settings, dataFolder }: UiParts): Promise<StoreAnswer> {
  const { records, passages, bytes, driver, sqliteVersion } = await store.health();
  // desk.shelves() leaves out spaces without a memory.
  const shelves = await store.desk.shelves();
  const waiting = findWaiting(dataFolder).reduce((sum, one) => sum + one.records, 0);
  return {
    memories: records,
    projects: shelves.length,
    passages,
    bytes,
    engine: `SQLite ${sqliteVersion}, ${driver}`,
    waiting,
    service: settings.memory.kind === 'hosted' ? new URL(settings.memory.baseUrl).host : '',
    svc: VERSION_AND_BUILD,
    node: process.versions.node,
  };
}

/** Bound on pages of 200 exchanges whose files are compared, oldest first, because a user waits. */
const STALE_PAGES_MAX = 25;

/**
 * Returns references of memories that `svc memory list --stale` lists for a space, from STALE_PAGES_MAX pages at most.
 */
async function staleIn(space: string, { store, dataFolder }: UiParts): Promise<readonly string[]> {
  const checker = new CodeChecker(new CodeFiles(), dataFolder);
  const scope = { space, pagesMax: STALE_PAGES_MAX };
  const { stale } = await findStale(store.provenance, checker, scope);
  return stale.map(({ ref }) => ref);
}

/** Moves the memories of a space, as `svc memory spaces` does. The page shows a CliError, whose text is for users. */
async function moveInStore(change: SpaceChange, { dataFolder, store }: UiParts): Promise<void> {
  await moveSpaceIn(store.memory, dataFolder, change).catch((error: unknown) => {
    if (!(error instanceof CliError)) throw error;
    throw new UiRefusal(409, 'refused', `${error.message} ${error.hint}`);
  });
}

/** Returns the folder of the page's files: `dist/ui`. This code runs from `dist`, a folder in it, or `src/cli`. */
function pageFolder(): string {
  // In CommonJS the bundler replaces exactly the words `import.meta.url`.
  const url = import.meta.url;
  const built = url.endsWith('.cjs') ? '../ui' : './ui';
  return fileURLToPath(new URL(url.endsWith('.ts') ? '../../dist/ui' : built, url));
}
