import type { Dialect } from '../conversation/view.ts';
import type { NetworkProxy } from './network-proxy.ts';
import type { UpstreamAuth } from '../http/header-rules.ts';
import type { CompressionMode, MemoryMode } from '../http/modes.ts';

/** The settings of a running proxy, combined from file, environment and flags. */

/**
 * How long the provider should cache the prompt. `client`: as the client marks it. `auto`: an hour for tools and
 * system prompt, if that pays.
 */
export const CACHE_TTLS = ['client', 'auto'] as const;
export type CacheTtl = (typeof CACHE_TTLS)[number];

/**
 * How svc shortens bound conversations, whose thinking a provider ties to everything before it. `off`: svc leaves out
 * nothing new. `provider`: svc asks the provider to clear old tool outputs.
 */
export const BOUND_SHORTENINGS = ['off', 'provider'] as const;
export type BoundShortening = (typeof BOUND_SHORTENINGS)[number];

/**
 * Whether second looks are allowed. `hosted`: also with a memory service, which then gets masked names of files, code
 * and errors.
 */
export const SECOND_LOOKS = ['on', 'off', 'hosted'] as const;
export type SecondLook = (typeof SECOND_LOOKS)[number];

export interface ProxySettings {
  /** A loopback address: 127.0.0.1 or ::1. */
  readonly host: string;
  /** 0 asks the system for a free port. */
  readonly port: number;
  readonly memoryMode: MemoryMode;
  readonly compressionMode: CompressionMode;
  /** Estimated tokens of a request above which shortening is considered. */
  readonly inputBudget: number;
  /** Estimated tokens of all recalled blocks in one request together. */
  readonly recalledTokensMax: number;
  /** True: add a list of earlier sessions to an agent's first prompt. */
  readonly sessionBrief: boolean;
  /**
   * The percentage of a project's prompts for which recall adds nothing to an agent's request. It applies nearly
   * unchanged to the second and third prompt of a session: quietShareAt() lowers it before them and raises it later.
   */
  readonly recallQuietPercent: number;
  /** Whether svc takes a second look, once per prompt, when the agent's first calls say more than the prompt did. */
  readonly secondLook: SecondLook;
  /** Whether a hook cuts the middle out of a shell's long output before the client sends it. */
  readonly hookCut: boolean;
  /** True: shortening may leave out outputs of tools. */
  readonly elisionEnabled: boolean;
  /** The number of newest rounds of tool calls whose outputs always stay. */
  readonly elisionKeepRounds: number;
  /** Bound on the outputs, and on the earlier exchanges, that svc stores in the memory after one request. */
  readonly elisionCaptureLimit: number;
  readonly cacheTtl: CacheTtl;
  readonly boundShortening: BoundShortening;
  /** Bound on a decoded request body, in bytes. */
  readonly bodyBytesMax: number;
  /** Bound on a zstd request body before decoding, in bytes. */
  readonly zstdBytesMax: number;
  /** Deadline of a recall in milliseconds, including the connection. */
  readonly recallMs: number;
  /** Deadline of the provider's response headers in milliseconds. */
  readonly upstreamHeadersMs: number;
  /** How long a shutdown waits for open answers, in milliseconds. */
  readonly drainMs: number;
  /**
   * True: about one in ten conversations gets no recall and no shortening, for comparison; see core/meter/hold-out.ts.
   */
  readonly holdOut: boolean;
  /**
   * The number of requests that svc keeps with their bodies, so that the page can show them. They are only in memory.
   */
  readonly keepRequests: number;
  /** Exact paths, besides those that svc knows, that are relayed unchanged to Anthropic's or OpenAI's upstream. */
  readonly relayPaths: readonly string[];
}

/**
 * The settings that the request handler reads. The others are for the listener (address, body limits, shutdown, paths)
 * and for hooks.
 */
export type HandlerSettings = Omit<
  ProxySettings,
  'host' | 'port' | 'hookCut' | 'bodyBytesMax' | 'zstdBytesMax' | 'drainMs' | 'relayPaths'
>;

/** A credential in the file: the text itself, or the environment variable with it. */
export type Credential = string | { readonly env: string };

export interface UpstreamSettings {
  readonly name: string;
  readonly apiStyle: Dialect;
  readonly baseUrl: string;
  /** The key itself, never a reference. '' only with auth 'none' or 'client'. */
  readonly providerKey: string;
  readonly auth: UpstreamAuth;
  /** Custom headers, in which `$API_KEY` has been replaced. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
  /** The network proxy to this provider; undefined: svc connects directly. */
  readonly proxy?: NetworkProxy;
  /** Overrides `proxy.compressionMode` for this provider. */
  readonly compressionMode?: CompressionMode;
}

export type MemorySettings =
  | { readonly kind: 'embedded' }
  | {
      readonly kind: 'hosted';
      readonly baseUrl: string;
      readonly serviceKey: string;
      /** True if the service may be in the user's own network or on this machine. */
      readonly allowPrivate: boolean;
      readonly proxy?: NetworkProxy;
    };

export interface Settings {
  readonly proxy: ProxySettings;
  readonly memory: MemorySettings;
  readonly upstreams: readonly UpstreamSettings[];
  readonly localToken: string;
  /** True if the page of `svc ui` is served. */
  readonly ui: boolean;
}
