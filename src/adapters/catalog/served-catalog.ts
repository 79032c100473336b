import type { Provider } from '../../core/settings/catalog.ts';
import type { ModelFacts } from '../../core/settings/model-facts.ts';
import { type CatalogOptions, openCatalog, type OpenCatalog } from './catalog.ts';

/**
 * Keeps the catalog current in a process that runs for months. A query opens the catalog again if the last opening was
 * more than ten minutes ago. Opening downloads a newer copy if the cached one is older than a day.
 */

const REST_MS = 10 * 60_000;

export class ServedCatalog {
  readonly #options: CatalogOptions;
  #opened: Promise<OpenCatalog> | undefined;
  #openedAt = 0;
  #latest: OpenCatalog | undefined;

  constructor(options: CatalogOptions) {
    this.#options = options;
  }

  async providers(): Promise<readonly Provider[]> {
    return (await this.#open()).providers();
  }

  /** Returns a model's facts from the copy that is loaded. Until the first copy is loaded, it returns undefined. */
  factsOf(model: string): ModelFacts | undefined {
    this.#open().then(
      (catalog) => (this.#latest = catalog),
      () => undefined,
    );
    return this.#latest?.factsOf(model);
  }

  async close(): Promise<void> {
    await (await this.#opened)?.close();
  }

  #open(): Promise<OpenCatalog> {
    const now = this.#options.now();
    // If the clock was set back, open the catalog again, because the age of the copy is unknown.
    const isResting = now >= this.#openedAt && now - this.#openedAt < REST_MS;
    if (this.#opened !== undefined && isResting) return this.#opened;
    this.#openedAt = now;
    return (this.#opened = this.#again(this.#opened));
  }

  async #again(before: Promise<OpenCatalog> | undefined): Promise<OpenCatalog> {
    await (await before)?.close();
    return openCatalog(this.#options);
  }
}
