/**
 * Caches the handlers of all keys within two bounds, on their bytes and on their number. Above a bound it drops the
 * least recently used handler of the tenant that exceeds its share most, or of all if no tenant exceeds its share. So a
 * tenant may use all free memory, but a tenant with many busy keys cannot push out the others.
 */

/** A handler whose bytes count against the budget. */
export interface ShelvedHandler {
  readonly tenant: string;
  /** Returns an estimate of the bytes that the handler holds, which may change at any time. */
  heldBytes(): number;
  /** Called when the handler is dropped, so that it gets no new requests. Running requests continue. */
  leave(): void;
}

export interface ShelfBounds {
  /** Bound on the bytes of all handlers together. */
  readonly bytesMax: number;
  readonly handlersMax: number;
}

/** The limits for all handlers together. The bodies of running requests have a separate budget. */
export const SHELF_BOUNDS: ShelfBounds = { bytesMax: 256 << 20, handlersMax: 5_000 };

/**
 * The share of either bound above which a tenant's handlers are dropped first. Three tenants at this share leave a
 * quarter to all others.
 */
const PART_MAX = 1 / 4;
/** Bytes of a handler in addition to `heldBytes`. A handler with one short conversation has 62 kB in all (measured). */
export const HANDLER_BYTES = 40_960;

/** A cached handler, with its bytes when they were last counted. */
interface Place<Handler> {
  readonly name: string;
  readonly handler: Handler;
  readonly tenant: TenantPlaces<Handler>;
  bytes: number;
}

interface TenantPlaces<Handler> {
  readonly places: Map<string, Place<Handler>>;
  bytes: number;
}

export class HandlerShelf<Handler extends ShelvedHandler> {
  readonly #bounds: ShelfBounds;
  /** The places by their name, from the least to the most recently used. */
  readonly #places = new Map<string, Place<Handler>>();
  readonly #tenants = new Map<string, TenantPlaces<Handler>>();
  #bytes = 0;

  constructor(bounds: ShelfBounds) {
    this.#bounds = bounds;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#places.size;
  }

  values(): readonly Handler[] {
    return [...this.#places.values()].map(({ handler }) => handler);
  }

  get(name: string): Handler | undefined {
    const place = this.#places.get(name);
    if (place !== undefined) this.#use(place);
    return place?.handler;
  }

  /** Adds a handler, and drops an earlier one of the same name. */
  put(name: string, handler: Handler): void {
    const before = this.#places.get(name);
    if (before !== undefined) this.#leave(before);
    const tenant = this.#tenants.get(handler.tenant) ?? { places: new Map(), bytes: 0 };
    this.#tenants.set(handler.tenant, tenant);
    const place = { name, handler, tenant, bytes: 0 };
    this.#use(place);
    this.#weigh(place);
  }

  /** Counts a handler's bytes again. Call it when they may have changed. */
  weigh(name: string): void {
    const place = this.#places.get(name);
    if (place !== undefined) this.#weigh(place);
  }

  #weigh(place: Place<Handler>): void {
    this.#resize(place, place.handler.heldBytes() + HANDLER_BYTES);
    const { bytesMax, handlersMax } = this.#bounds;
    while (this.#bytes > bytesMax || this.#places.size > handlersMax) {
      const [oldest] = (this.#largest()?.places ?? this.#places).values();
      if (oldest === undefined) return;
      this.#leave(oldest);
    }
  }

  /** Returns the tenant that exceeds PART_MAX most; undefined if none exceeds it. */
  #largest(): TenantPlaces<Handler> | undefined {
    let [largest, part]: [TenantPlaces<Handler> | undefined, number] = [undefined, PART_MAX];
    for (const tenant of this.#tenants.values()) {
      if (this.#partOf(tenant) > part) [largest, part] = [tenant, this.#partOf(tenant)];
    }
    return largest;
  }

  #partOf({ bytes, places }: TenantPlaces<Handler>): number {
    const { bytesMax, handlersMax } = this.#bounds;
    return Math.max(bytes / bytesMax, places.size / handlersMax);
  }

  #use(place: Place<Handler>): void {
    const { name, tenant } = place;
    for (const places of [this.#places, tenant.places]) {
      places.delete(name);
      places.set(name, place);
    }
  }

  #resize(place: Place<Handler>, bytes: number): void {
    const { tenant } = place;
    this.#bytes += bytes - place.bytes;
    tenant.bytes += bytes - place.bytes;
    place.bytes = bytes;
  }

  #leave(place: Place<Handler>): void {
    const { name, handler, tenant } = place;
    this.#places.delete(name);
    tenant.places.delete(name);
    this.#resize(place, 0);
    if (tenant.places.size === 0) this.#tenants.delete(handler.tenant);
    handler.leave();
  }
}
