import type { Dialect } from '../conversation/view.ts';

/**
 * The HTTP side of one dialect: its routes, credentials and errors. Commands that clients run often need
 * only this, and must not load the code that reads conversations.
 */
export interface DialectApi {
  readonly name: Dialect;
  /** The name that people use. */
  readonly title: string;
  /** The clients and providers that speak it, for a person who has to choose. */
  readonly speakers: string;
  /** The provider whose API it is. Dialects of one provider usually share an upstream. */
  readonly provider: 'anthropic' | 'openai';

  /** The path of the model route, as every provider's own API has it. */
  readonly modelPath: string;
  /** Further paths of the dialect that clients call. svc relays them untouched. */
  readonly helperPaths: readonly string[];
  /** Clients of this dialect write the version segment into their base URL. */
  readonly baseUrlHasVersion: boolean;
  /** How a provider of this dialect takes its key when the configuration does not say. */
  readonly defaultAuth: 'x-api-key' | 'bearer';
  /** Headers that the provider demands besides the credential. */
  readonly callHeaders: Readonly<Record<string, string>>;
  /** The shape in which the dialect's SDKs expect an error. */
  errorBody(error: ErrorFacts): object;
}

export interface ErrorFacts {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly requestId: string;
  /** Only a service's errors have it. */
  readonly service?: ServiceErrorFacts;
}

export interface ServiceErrorFacts {
  /** Null for a caller without a valid key. */
  readonly receipt_id: string | null;
  readonly retry: { readonly action: string; readonly after_ms?: number };
}
