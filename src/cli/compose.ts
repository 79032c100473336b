import type { ServedCatalog } from '../adapters/catalog/served-catalog.ts';
import { createBodyDecoder } from '../adapters/encoding/body-decoder.ts';
import { type EmbeddedStore, openEmbeddedStore } from '../adapters/store/embedded-store.ts';
import { createUpstream } from '../adapters/network/undici-upstream.ts';
import type { Dialect } from '../core/conversation/view.ts';
import { digestOf, pathTokenOf } from '../core/http/local-token.ts';
import { rememberOwnSecrets } from '../core/redaction/own-secrets.ts';
import { ownSecretsOf } from '../core/settings/own-secrets.ts';
import type { Login } from '../core/http/logins.ts';
import { LOCAL_TENANT } from '../core/ledger/entries.ts';
import type { Route } from '../core/http/routes.ts';
import type { Environment } from '../core/settings/config-values.ts';
import { planLimitOf, quotaRowOf } from '../core/meter/quota.ts';
import { factsOfModel, type ModelFacts } from '../core/settings/model-facts.ts';
import { loginOf } from '../core/settings/config-upstreams.ts';
import type { Settings } from '../core/settings/settings.ts';
import { VERSION } from '../core/version.ts';
import { LocalServer } from '../local/server.ts';
import type { UiDoor } from '../local/ui-door.ts';
import { blockKeyOf } from '../core/recall/own-blocks.ts';
import { CodeFiles } from '../adapters/projects/code-files.ts';
import { GitProjects } from '../adapters/projects/git-projects.ts';
import { hookKey, readHookKey } from '../adapters/files/hook-key.ts';
import { outputFolder } from '../adapters/files/output-files.ts';
import { TEXTS } from '../adapters/texts.ts';
import type { RequestRow } from '../ports/request-log.ts';
import type { Upstream } from '../ports/upstream.ts';
import { accountsOf } from '../proxy/accounts.ts';
import { HookMemory } from '../proxy/hook-memory.ts';
import { LAST_WORK_MS } from '../proxy/background-queue.ts';
import { ProxyHandler } from '../proxy/handle.ts';
import { nameBoundInShadow } from './proxy/recent-trouble.ts';
import { InFlight, KeptRequests } from '../proxy/in-flight.ts';
import type { ConfiguredUpstream } from '../proxy/dependencies.ts';
import { newRequestId, reportTo, systemClock } from './compose-common.ts';
import { count } from './listing.ts';
import type { UiParts } from './compose-ui.ts';
import type { Terminal } from './terminal.ts';
import { upstreamFor, findUpstream, type LiveSettings } from '../proxy/upstream-choice.ts';

/** Builds the proxy: opens the adapters, and gives them to its handler as ports. */

/** Time without an open request, in milliseconds, after which a started proxy warms up. */
const REST_MS = 100;
/**
 * Longest time, in milliseconds, for which an answer's end waits until state.db has what the answer adds; then the end
 * is sent anyway. A user does not notice this wait.
 */
const HOLD_MS = 50;

export interface StartProxyOptions {
  readonly settings: Settings;
  readonly dataFolder: string;
  readonly terminal: Terminal;
  /** The folder in which the catalog of models is cached; undefined: svc knows only the models in its own table. */
  readonly catalog?: CatalogPlace;
  readonly onRow?: (row: RequestRow) => void;
}

export interface RunningProxy {
  readonly host: string;
  /** The port. If the settings say 0, the system has chosen it. */
  readonly port: number;
  /** Accepts no more requests, lets open answers finish for at most `proxy.drainMs`, and closes everything. */
  stop(): Promise<void>;
  /**
   * Applies the settings of a changed file from the next request on. Host, port and the place of memories change only
   * at a restart.
   */
  apply(settings: Settings): void;
}

/** Starts the proxy. Throws Node's error (EADDRINUSE, EACCES) if the address cannot be used. */
export async function startProxy(options: StartProxyOptions): Promise<RunningProxy> {
  const opened = new Opened();
  try {
    return await startOn(opened, options);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function startOn(opened: Opened, options: StartProxyOptions): Promise<RunningProxy> {
  const { settings, dataFolder, terminal, onRow } = options;
  const runtime = opened.add(new Runtime(settings));
  const decoder = opened.add(createBodyDecoder());
  // The store's thread opens the files while the listener starts.
  const store = opened.add(
    openEmbeddedStore({ folder: dataFolder, report: (line) => terminal.warn(line) }),
  );
  const inFlight = new InFlight();
  const kept = new KeptRequests();
  const { memory, outbox } = opened.add(await openMemory(options, { runtime, store }));
  const models = opened.add(new ModelCatalog(options.catalog));
  const factsOf = (model: string): ModelFacts | undefined => models.factsOf(model);
  const isHere = settings.memory.kind === 'embedded';
  const shared = {
    memory,
    ledger: store.ledger,
    clock: systemClock,
    settings: () => runtime.now.live.proxy,
    projects: new GitProjects(dataFolder),
    texts: TEXTS,
    // A memory service does not know the files that a record is about.
    code: isHere ? { reader: new CodeFiles(), provenance: store.provenance } : undefined,
  };
  const handler = new ProxyHandler({
    ...shared,
    inFlight,
    kept,
    issuer: { kind: 'local-proxy', version: VERSION },
    tenant: LOCAL_TENANT,
    choose: ({ request: { id, route } }) => ({
      configured: upstreamFor(runtime.liveFor(id), route),
    }),
    outbox,
    accounts: accountsOf(factsOf),
    factsOf,
    // Delays an answer's end while a write to state.db waits, mostly a millisecond or two for another process's lock.
    holdBack: {
      ms: HOLD_MS,
      isNeeded: () => store.state.writer.isBehind,
      stored: (msLeft) => store.state.writer.caughtUp(msLeft),
    },
    get blockKey() {
      return runtime.now.blockKey;
    },
    hookKey: () => readHookKey(dataFolder),
    outputFolder: isHere ? outputFolder(dataFolder) : undefined,
    note: (facts) => {
      const quota = quotaRowOf(facts, () => hookKey(dataFolder));
      const limit = planLimitOf(facts.row.status, quota?.reading);
      const row = limit === undefined ? facts.row : { ...facts.row, planLimit: limit };
      if (quota !== undefined) store.requestLog.addQuota(quota);
      store.requestLog.add(row);
      onRow?.(row);
      inFlight.finished(row);
    },
  });
  const hooks = new HookMemory({ ...shared, hookKey: () => hookKey(dataFolder) });
  const ui = lazyUi({ ...options, store, inFlight, kept, memory, live: () => runtime.now.live });
  const server = new LocalServer({
    settings: shared.settings,
    tokenDigests: () => runtime.now.tokenDigests,
    pathTokenDigests: () => runtime.now.pathTokenDigests,
    loginOf: (route) => runtime.loginOf(route),
    decode: decoder.decode,
    handler: (request, outgoing) =>
      runtime.using(request.id, () => handler.handle(request, outgoing)),
    hook: (asked) => hooks.answer(asked),
    clock: systemClock,
    newId: newRequestId,
    inFlight: () => inFlight.rows(),
    modeLimits: () => ({ ...runtime.now.live.proxy, supports: memory.supports }),
    report: reportTo(terminal),
    ui: () => (runtime.now.hasUi ? ui.open() : undefined),
    version: VERSION,
  });
  const address = await server.listen();
  // Warm up only when no request is open, so that a request right after the start need not wait for the warming.
  const stopResting = onceIdle({ server, inFlight }, () => warmAll(runtime, store, terminal));
  return {
    ...address,
    apply: (next) => {
      if (JSON.stringify(next.memory) !== JSON.stringify(settings.memory)) {
        terminal.warn('A new place for memories applies after a restart: svc stop && svc start');
      }
      const { blockKey } = runtime.now;
      const isShadow = next.proxy.compressionMode === 'shadow';
      if (isShadow && runtime.now.live.proxy.compressionMode !== 'shadow') {
        nameBoundInShadow(dataFolder, Date.now(), terminal);
      }
      runtime.apply(next);
      void ui.apply(next);
      // The sessions of the page depend on the local token, as the block key does. A page that was opened with the old
      // token must be opened again.
      if (runtime.now.blockKey !== blockKey) void ui.renew();
    },
    stop: async () => {
      stopResting();
      await ui.close();
      await server.stop(runtime.now.live.proxy.drainMs);
      await handler.drain(LAST_WORK_MS);
      const lost = handler.keepLast();
      if (lost > 0) {
        terminal.warn(
          `${count(lost, 'capture is', 'captures are')} lost: the disk of ${dataFolder} did not take ` +
            'them before svc stopped.',
        );
      }
      await opened.close();
    },
  };
}

/** Opens connections and prepares the store for the first request, and warns if the memory cannot be used. */
function warmAll(runtime: Runtime, store: EmbeddedStore, terminal: Terminal): void {
  runtime.warm();
  void store.warm();
  void store.memory.sweepFiles().catch(() => undefined);
  // Warn the user, who would not notice that requests get no memory.
  store.health().catch(() => {
    terminal.warn(
      'The memory cannot be used, so requests continue without it. Check with: svc doctor',
    );
  });
}

interface Closable {
  close(): Promise<void>;
}

/** Returns the page of `svc ui`. Its code is loaded at the first request of the page. */
function lazyUi(first: UiParts): Closable & {
  open(): Promise<UiDoor>;
  apply(settings: Settings): Promise<void>;
  /** Ends all links and sessions of the page. The next open() begins without any. */
  renew(): Promise<void>;
} {
  let parts = first;
  let door: Promise<UiDoor> | undefined;
  const close = async (): Promise<void> => (await door)?.close();
  return {
    open: () => (door ??= import('./compose-ui.ts').then(({ openUi }) => openUi(parts))),
    close,
    apply: async (settings) => {
      parts = { ...parts, settings };
      if (door !== undefined) (await import('./compose-ui.ts')).maskKeysOf(settings);
    },
    renew: async () => {
      const ended = close();
      door = undefined;
      await ended;
    },
  };
}

/** The parts that were opened so far. close() closes them in reverse order, also if the start fails halfway. */
class Opened {
  readonly #parts: Closable[] = [];

  add<Part extends Closable>(part: Part): Part {
    this.#parts.unshift(part);
    return part;
  }

  async close(): Promise<void> {
    for (const part of this.#parts.splice(0)) {
      // oxlint-disable-next-line no-await-in-loop -- A later part may still need an earlier one.
      await part.close();
    }
  }
}

/** Runs `work` when no request has been open for REST_MS. Returns a function that cancels it. */
function onceIdle(
  { server, inFlight }: { readonly server: LocalServer; readonly inFlight: InFlight },
  work: () => void,
): () => void {
  let busyAt = -Infinity;
  const unwatch = inFlight.watch(() => {
    busyAt = performance.now();
  });
  let timer: NodeJS.Timeout;
  const look = (): void => {
    timer = setTimeout(() => {
      const isIdle = server.openRequests === 0 && performance.now() - busyAt >= REST_MS;
      if (!isIdle) return look();
      unwatch();
      work();
    }, REST_MS);
  };
  look();
  return () => {
    clearTimeout(timer);
    unwatch();
  };
}

interface CatalogPlace {
  readonly folder: string;
  readonly environment: Environment;
}

/**
 * Knows prices and limits of models. The first model that is not in svc's own table makes it load the catalog of all
 * models. Until the catalog is loaded, such a model has no facts.
 */
class ModelCatalog implements Closable {
  readonly #place: CatalogPlace | undefined;
  #opening: Promise<ServedCatalog> | undefined;
  #catalog: ServedCatalog | undefined;

  constructor(place: CatalogPlace | undefined) {
    this.#place = place;
  }

  factsOf(model: string): ModelFacts | undefined {
    const own = factsOfModel(model);
    if (own !== undefined || model === '' || this.#place === undefined) return own;
    this.#opening ??= this.#open(this.#place);
    return this.#catalog?.factsOf(model);
  }

  async close(): Promise<void> {
    await (await this.#opening)?.close();
  }

  async #open(place: CatalogPlace): Promise<ServedCatalog> {
    const { ServedCatalog } = await import('../adapters/catalog/served-catalog.ts');
    return (this.#catalog = new ServedCatalog({ ...place, now: Date.now, open: createUpstream }));
  }
}

/**
 * Opens the memory. With a memory service, the store here still has ledger, outbox, request log and copies of outputs.
 */
async function openMemory(
  { settings, terminal }: StartProxyOptions,
  { runtime, store }: { readonly runtime: Runtime; readonly store: EmbeddedStore },
) {
  const { memory } = settings;
  if (memory.kind === 'embedded') {
    return { memory: store.memory, outbox: store.outbox, close: async () => {} };
  }
  const { openHostedMemoryWithOutbox } =
    await import('../adapters/memory-client/open-hosted-memory.ts');
  const hosted = openHostedMemoryWithOutbox({
    settings: memory,
    get recallMs() {
      return runtime.now.live.proxy.recallMs;
    },
    mirror: store.memory,
    state: store.state,
    report: (line) => terminal.warn(line),
  });
  void hosted.watch();
  return hosted;
}

type Generation = ReturnType<typeof generationOf>;

/**
 * The configurations in use: the present one, and earlier ones with open requests. A request keeps the providers with
 * which it began. The connections of a provider are closed when no configuration in use has it.
 */
class Runtime {
  /** The configuration for new requests. */
  now: Generation;
  #earlier: readonly Generation[] = [];
  /** The configuration with which each open request began, by the id of the request. */
  readonly #inUse = new Map<string, Generation>();

  constructor(settings: Settings) {
    this.now = generationOf(settings, undefined);
  }

  liveFor(requestId: string): LiveSettings {
    return (this.#inUse.get(requestId) ?? this.now).live;
  }

  /** Runs a request. The configuration with which it begins stays usable until its end. */
  async using(requestId: string, run: () => Promise<void>): Promise<void> {
    const generation = this.now;
    generation.users += 1;
    this.#inUse.set(requestId, generation);
    try {
      await run();
    } finally {
      this.#inUse.delete(requestId);
      generation.users -= 1;
      if (generation.users === 0 && generation !== this.now) this.#closeUnused();
    }
  }

  /** Returns the login that a route's upstream forwards; undefined if it forwards none, or there is no upstream. */
  loginOf(route: Route): Login | undefined {
    if (route.kind !== 'model' && route.kind !== 'relay') return undefined;
    const upstream = findUpstream(this.now.live, route);
    return upstream === undefined ? undefined : loginOf(upstream.settings);
  }

  apply(settings: Settings): void {
    const before = this.now;
    this.now = generationOf(settings, before.live);
    this.#earlier = [...this.#earlier, before];
    this.#closeUnused();
  }

  warm(): void {
    for (const { upstream } of this.now.live.upstreams.values()) upstream.warm();
  }

  async close(): Promise<void> {
    const all = [...this.#earlier, this.now];
    await Promise.all([...upstreamsOf(all)].map((upstream) => upstream.close()));
  }

  #closeUnused(): void {
    const ended = this.#earlier.filter(({ users }) => users === 0);
    this.#earlier = this.#earlier.filter(({ users }) => users > 0);
    const used = upstreamsOf([...this.#earlier, this.now]);
    for (const upstream of upstreamsOf(ended)) if (!used.has(upstream)) void upstream.close();
  }
}

/** Returns a configuration; `users`: the number of open requests that use it. Also lets svc mask the keys in it. */
function generationOf(settings: Settings, before: LiveSettings | undefined) {
  rememberOwnSecrets(ownSecretsOf(settings));
  const { localToken, proxy, ui } = settings;
  return {
    live: { proxy, upstreams: openUpstreams(settings, before) },
    tokenDigests: [digestOf(localToken)],
    pathTokenDigests: [digestOf(pathTokenOf(localToken))],
    blockKey: blockKeyOf(localToken),
    hasUi: ui,
    users: 0,
  };
}

function upstreamsOf(generations: readonly Generation[]): ReadonlySet<Upstream> {
  const all = generations.flatMap(({ live }) => [...live.upstreams.values()]);
  return new Set(all.map(({ upstream }) => upstream));
}

/**
 * Opens the upstreams of a configuration. An upstream with unchanged settings keeps its connections, unless
 * `proxy.upstreamHeadersMs` has changed.
 */
function openUpstreams(
  { upstreams, proxy }: Settings,
  before: LiveSettings | undefined,
): ReadonlyMap<Dialect, ConfiguredUpstream> {
  const headersMs = proxy.upstreamHeadersMs;
  const known = before?.proxy.upstreamHeadersMs === headersMs ? before.upstreams : undefined;
  return new Map(
    upstreams.map((settings) => {
      const old = known?.get(settings.apiStyle);
      if (old !== undefined && JSON.stringify(old.settings) === JSON.stringify(settings))
        return [settings.apiStyle, old];
      const upstream = createUpstream(settings, { headersMs });
      return [settings.apiStyle, { settings, upstream }];
    }),
  );
}
