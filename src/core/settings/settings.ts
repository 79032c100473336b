import type { Dialect } from '../conversation/view.ts';
import type { NetworkProxy } from './network-proxy.ts';
import type { UpstreamAuth } from '../http/header-rules.ts';
import type { CompressionMode, MemoryMode } from '../http/modes.ts';

/** The settings of one running proxy, after file, environment and flags have been joined. */

/** `client`: as the client marks it. `auto`: an hour for tools and system prompt, where that pays. */
export const CACHE_TTLS = ['client', 'auto'] as const;
export type CacheTtl = (typeof CACHE_TTLS)[number];

/** `provider`: in bound conversations svc asks the provider itself to clear old tool outputs. */
export const BOUND_SHORTENINGS = ['off', 'provider'] as const;
export type BoundShortening = (typeof BOUND_SHORTENINGS)[number];

/** `hosted`: also where the memory is a service, which then gets names of files, code and errors, masked. */
export const SECOND_LOOKS = ['on', 'off', 'hosted'] as const;
export type SecondLook = (typeof SECOND_LOOKS)[number];

export interface ProxySettings {
  /** A loopback address: 127.0.0.1 or ::1. */
  readonly host: string;
  /** 0 asks the system for a free port. */
  readonly port: number;
  readonly memoryMode: MemoryMode;
  readonly compressionMode: CompressionMode;
  /** Estimated tokens above which shortening is considered at all. */
  readonly inputBudget: number;
  /** Estimated tokens of all recalled blocks in one request together. */
  readonly recalledTokensMax: number;
  /** A list of earlier sessions at an agent's first prompt. */
  readonly sessionBrief: boolean;
  /** The percentage of a project's prompts for which recall adds nothing when an agent asks. */
  readonly recallQuietPercent: number;
  /** Whether svc looks again, once a prompt, when the agent's first calls say more than the prompt did. */
  readonly secondLook: SecondLook;
  /** Whether a hook cuts the middle out of a shell's long output before the client sends it. */
  readonly hookCut: boolean;
  readonly elisionEnabled: boolean;
  readonly elisionKeepRounds: number;
  readonly elisionCaptureLimit: number;
  readonly cacheTtl: CacheTtl;
  readonly boundShortening: BoundShortening;
  /** Decoded bytes of a request body. */
  readonly bodyBytesMax: number;
  /** Bytes of a zstd request body on the wire. */
  readonly zstdBytesMax: number;
  /** Milliseconds that recall may take, connecting included. */
  readonly recallMs: number;
  /** Milliseconds until the provider's response headers. */
  readonly upstreamHeadersMs: number;
  /** Milliseconds that a stop waits for open answers. */
  readonly drainMs: number;
  /** One in ten conversations gets no memory and no shortening, to compare with; see core/meter/hold-out.ts. */
  readonly holdOut: boolean;
  /** How many of the last requests the page may show whole; they are kept in memory only. */
  readonly keepRequests: number;
  /** Further exact paths that are relayed untouched to the upstream of the Anthropic or OpenAI side. */
  readonly relayPaths: readonly string[];
}

/** What the handler of requests reads. Its listener has the rest: an address, the bounds of bodies, a shutdown. */
export type HandlerSettings = Omit<
  ProxySettings,
  'host' | 'port' | 'hookCut' | 'bodyBytesMax' | 'zstdBytesMax' | 'drainMs' | 'relayPaths'
>;

/** A credential as the file has it: the text itself, or the environment variable that holds it. */
export type Credential = string | { readonly env: string };

export interface UpstreamSettings {
  readonly name: string;
  readonly apiStyle: Dialect;
  readonly baseUrl: string;
  /** Resolved: never a reference. '' only with auth 'none' or 'client'. */
  readonly providerKey: string;
  readonly auth: UpstreamAuth;
  /** `$API_KEY` in a value has been replaced. */
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly allowPrivate: boolean;
  /** The network's own proxy on the way there. Absent: svc connects directly. */
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
      /** The service is in the person's own network or on this machine. */
      readonly allowPrivate: boolean;
      readonly proxy?: NetworkProxy;
    };

export interface Settings {
  readonly proxy: ProxySettings;
  readonly memory: MemorySettings;
  readonly upstreams: readonly UpstreamSettings[];
  readonly localToken: string;
  /** The page of `svc ui` is served. */
  readonly ui: boolean;
}
