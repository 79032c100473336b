import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { BYTES_A_TOKEN } from '../../../../src/core/bytes/tokens.ts';
import { headerOf } from '../../../../src/core/http/header-rules.ts';
import { isProviderError } from '../../../../src/core/plan/plan.ts';
import { DEFAULT_SPACE } from '../../../../src/core/request/space.ts';
import { mayUse, type StoredKey } from '../../../../src/core/memory-api/keys.ts';
import {
  ACCOUNT_DEFAULTS,
  type AccountSettings,
  servedSettings,
} from '../../core/account-settings.ts';
import { isOwnMachine } from '../../../../src/core/settings/own-machine.ts';
import type { HandlerSettings } from '../../../../src/core/settings/settings.ts';
import { JournalFullError } from '../../ports/receipt-store.ts';
import { accountsOf } from '../../../../src/proxy/accounts.ts';
import { BackgroundPace } from '../../../../src/proxy/background-queue.ts';
import type {
  ClientRequest,
  KnownFacts,
  RequestFacts,
  UpstreamQuestion,
} from '../../../../src/proxy/dependencies.ts';
import { ProxyHandler } from '../../../../src/proxy/handle.ts';
import { ServiceFault } from '../fault.ts';
import type { ServingParts } from '../parts.ts';
import { believedUsage } from '../../core/receipt-rows.ts';
import { HandlerShelf, SHELF_BOUNDS, type ShelvedHandler } from './handler-shelf.ts';
import { factsOfModel } from '../../../../src/core/settings/model-facts.ts';
import { closingOf, type ModelCall, openingOf, type UnforwardedReceipts } from './receipt-facts.ts';
import { BodyHashes } from './body-hashes.ts';
import type { ProviderChoice } from './provider-choice.ts';

/**
 * Makes one handler for each key. A handler caches conversations by their text. Two keys, also of two tenants, may send
 * the same text, so they never share a handler. All handlers share one budget of bytes and one limit on background
 * work.
 */

/**
 * Pace of the background work of all keys together. While work waits, it takes at most a twentieth of the thread's time,
 * and rests at least 20 ms before each piece. A node that is never idle still does this work.
 */
const BACKGROUND = { paceMs: 20, share: 0.05 };

export class KeyHandlers {
  readonly #parts: ServingParts;
  readonly #choice: ProviderChoice;
  readonly #unforwarded: UnforwardedReceipts;
  readonly #background = new BackgroundPace(BACKGROUND);
  readonly #handlers: HandlerShelf<KeyHandler>;

  constructor(parts: ServingParts, choice: ProviderChoice, unforwarded: UnforwardedReceipts) {
    this.#parts = parts;
    this.#choice = choice;
    this.#unforwarded = unforwarded;
    this.#handlers = new HandlerShelf(parts.models.bounds ?? SHELF_BOUNDS);
  }

  of(key: StoredKey): KeyHandler {
    const name = `${key.tenant}:${key.keyId}`;
    const known = this.#handlers.get(name);
    const rights = JSON.stringify([key.scopes, key.spaces ?? null]);
    if (known?.rights === rights) return known;
    const handler = new KeyHandler(this.#parts, {
      key,
      rights,
      choice: this.#choice,
      unforwarded: this.#unforwarded,
      background: this.#background,
      changed: () => this.#handlers.weigh(name),
    });
    this.#handlers.put(name, handler);
    return handler;
  }

  /** Runs the background work of all handlers for at most `withinMs` milliseconds, at the shutdown. Never rejects. */
  async drain(withinMs: number): Promise<void> {
    await Promise.all(this.#handlers.values().map((handler) => handler.drain(withinMs)));
  }
}

interface Holder {
  readonly key: StoredKey;
  /** The scopes and spaces of the key. If they change, the key gets a new handler. */
  readonly rights: string;
  readonly choice: ProviderChoice;
  readonly unforwarded: UnforwardedReceipts;
  readonly background: BackgroundPace;
  /** Called when the number of bytes that the handler holds may have changed. */
  readonly changed: () => void;
}

export class KeyHandler implements ShelvedHandler {
  readonly rights: string;
  readonly tenant: string;
  readonly #parts: ServingParts;
  readonly #holder: Holder;
  readonly #calls = new Map<string, ModelCall>();
  readonly #handler: ProxyHandler;
  #settings: HandlerSettings;
  #account = ACCOUNT_DEFAULTS;
  #canReadAgain = false;

  constructor(parts: ServingParts, holder: Holder) {
    const { key, rights, background, changed } = holder;
    const { tenant } = key;
    this.rights = rights;
    this.tenant = tenant;
    this.#parts = parts;
    this.#holder = holder;
    const { ledger, holdBack, memoryOf, outboxOf, texts } = parts.models;
    const { publicUrl } = parts.settings;
    this.#settings = this.#settingsOf();
    this.#handler = new ProxyHandler({
      issuer: { kind: 'service' },
      tenant,
      settings: () => this.#settings,
      choose: (asked) => this.#choose(asked),
      placeIn: (space, isNamed) => placeIn(key, space, isNamed),
      mayRead: (space) => key.scopes.includes('read') && mayUse(key, space),
      memory: memoryOf(tenant, key),
      ledger,
      ...(holdBack && { holdBack }),
      outbox: outboxOf(tenant),
      texts,
      accounts: accountsOf(factsOfModel),
      factsOf: factsOfModel,
      clock: parts.clock,
      blockKey: blockKeyOf(parts.pepper, tenant),
      outputFolder: undefined,
      objectsUrl: publicUrl && `${publicUrl}/v1/svc/memory/objects/`,
      admit: (facts) => this.#admit(facts),
      planned: (facts) => this.#open(facts),
      note: (facts) => this.#note(facts),
      background,
      changed,
      hashes: (body) => new BodyHashes(body),
    });
  }

  async handle(
    call: ModelCall,
    request: ClientRequest,
    { outgoing, account }: { readonly outgoing: ServerResponse; readonly account: AccountSettings },
  ): Promise<void> {
    const canReadAgain = reachesObjects(request, this.#parts.settings.publicUrl);
    if (account !== this.#account || canReadAgain !== this.#canReadAgain) {
      this.#account = account;
      this.#canReadAgain = canReadAgain;
      this.#settings = this.#settingsOf();
    }
    this.#calls.set(call.receiptId, call);
    try {
      await this.#handler.handle(request, outgoing);
    } finally {
      this.#calls.delete(call.receiptId);
      this.#holder.changed();
    }
  }

  #settingsOf(): HandlerSettings {
    const { recallMs } = this.#parts.models;
    return servedSettings(this.#account, { recallMs, canReadAgain: this.#canReadAgain });
  }

  heldBytes(): number {
    return this.#handler.heldBytes();
  }

  leave(): void {
    this.#handler.leave();
  }

  drain(withinMs: number): Promise<void> {
    return this.#handler.drain(withinMs);
  }

  async #choose(asked: UpstreamQuestion) {
    const call = this.#callOf(asked.request);
    const { choice } = this.#holder;
    // Read the model before choose() may refuse the request, because the receipt of a refusal names it too.
    call.model = choice.modelOf(asked);
    call.chosen = await choice.choose(call.caller.key, asked, call.model);
    return call.chosen;
  }

  async #admit(facts: KnownFacts): Promise<void> {
    // Count the handler's bytes now: it holds the conversation from here on, and the answer may take minutes.
    this.#holder.changed();
    const call = this.#callOf(facts.request);
    const { caller, receiptId: callId } = call;
    const bytes = facts.request.body?.length ?? 0;
    // If svc does not read the body, the estimate of its tokens comes from the number of its bytes.
    const inputTokens = facts.plan.originalTokens || Math.ceil(bytes / BYTES_A_TOKEN);
    call.inputTokens = inputTokens;
    call.admitted = await this.#parts.admission.admit({ caller, callId, inputTokens });
  }

  /** Opens the receipt: nothing is forwarded without one. */
  #open(facts: KnownFacts): void {
    const call = this.#callOf(facts.request);
    const { forwardedTokens } = facts.plan;
    if (forwardedTokens > 0) call.inputTokens = forwardedTokens;
    try {
      call.receipt = this.#parts.receipts.open(openingOf(call, facts));
    } catch (error) {
      throw error instanceof JournalFullError ? journalFull() : error;
    }
  }

  #note(facts: RequestFacts): void {
    const call = this.#callOf(facts.request);
    call.admitted?.settle(spentOf(call, facts));
    const closing = closingOf(call, facts);
    if (call.receipt !== undefined) call.receipt.close(closing);
    else call.hasReceipt = this.#holder.unforwarded.refused(openingOf(call, facts), closing);
  }

  #callOf({ id }: ClientRequest): ModelCall {
    const call = this.#calls.get(id);
    if (call === undefined) throw new Error('A request came past its caller.');
    return call;
  }
}

/**
 * Returns the tokens that a request cost: the provider's count, or an estimate if the answer has no count, such as
 * streamed Chat Completions without include_usage. 'unused' if the request cost nothing. Undefined if even the input is
 * unknown.
 */
function spentOf({ kind, inputTokens }: ModelCall, facts: RequestFacts) {
  const { head, answer } = facts;
  if (FREE.has(kind)) return 'unused';
  // A provider charges for a request that was sent, even if the client disconnects before the answer's head.
  const isSent = facts.hashes?.forwarded !== undefined;
  const isLeft = isSent && facts.row.end === 'client-gone';
  if (head === undefined ? !isLeft : isProviderError(head.status)) return 'unused';
  const { uncountedTokens = 0 } = facts;
  if (answer?.usage === undefined) {
    return inputTokens === undefined ? undefined : { input: inputTokens, output: uncountedTokens };
  }
  const { input, cacheRead, cacheWrite, output } = believedUsage(answer.usage);
  return { input: input + cacheRead + cacheWrite, output: output || uncountedTokens };
}

const FREE: ReadonlySet<string> = new Set(['count_tokens', 'input_tokens']);

export function journalFull(): ServiceFault {
  return new ServiceFault('JOURNAL_FULL', 'No receipt can be written now.');
}

/**
 * Says whether the sender of a request can reach the service's public address. If the public address is a loopback
 * address, only a client on this machine can. The request of another client comes through a proxy on this machine, and
 * has x-forwarded-for, or the Host by which the client reached that proxy.
 */
function reachesObjects({ headers }: ClientRequest, publicUrl: string | undefined): boolean {
  if (publicUrl === undefined) return false;
  if (!isOwnMachine(new URL(publicUrl).hostname)) return true;
  if (headerOf(headers, 'x-forwarded-for') !== undefined) return false;
  const host = `http://${headerOf(headers, 'host') ?? ''}`;
  return URL.canParse(host) && isOwnMachine(new URL(host).hostname);
}

/**
 * Returns the space that a request uses. If the key may not use the given space, a space that svc derived is replaced
 * by the default one, and a space that the caller named is refused. Undefined if the key may use neither the derived
 * space nor the default one. Throws ServiceFault SPACE_DENIED.
 */
function placeIn(key: StoredKey, space: string, isNamed: boolean): string | undefined {
  if (mayUse(key, space)) return space;
  if (!isNamed) return mayUse(key, DEFAULT_SPACE) ? DEFAULT_SPACE : undefined;
  throw new ServiceFault('SPACE_DENIED', 'The key may not use this space.');
}

/** Derives the key that signs a tenant's recalled blocks, so that no other tenant can forge one. */
function blockKeyOf(pepper: Uint8Array, tenant: string): string {
  return createHmac('sha256', pepper).update(`svc-block/1|${tenant}`).digest('base64url');
}
