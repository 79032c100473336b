import type { Settings } from '../../core/settings/settings.ts';
import type { RequestRow } from '../../ports/request-log.ts';

/**
 * Providers that refuse svc's key. The client shows the provider's own 401, which sends the person
 * to a login. So svc names the command that helps: on its terminal, in its log and in `svc status`.
 */
export class RefusedKeys {
  #settings: Settings;
  readonly #names = new Set<string>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** A changed configuration may hold other keys: what was refused before says nothing about them. */
  use(settings: Settings): void {
    this.#settings = settings;
    this.#names.clear();
  }

  get names(): readonly string[] {
    return [...this.#names];
  }

  /** True when the row changed which providers refuse their key. */
  note({ status, dialect }: Pick<RequestRow, 'status' | 'dialect'>): boolean {
    const upstream = this.#settings.upstreams.find(({ apiStyle }) => apiStyle === dialect);
    if (upstream === undefined || upstream.auth === 'client' || upstream.auth === 'none') {
      return false;
    }
    const { name } = upstream;
    if (status === UNAUTHORIZED && !this.#names.has(name)) {
      this.#names.add(name);
      return true;
    }
    return status < FIRST_ERROR && this.#names.delete(name);
  }
}

const UNAUTHORIZED = 401;
const FIRST_ERROR = 400;

export function refusedKeyText(name: string): string {
  return `${name} refuses the key that svc has for it (401). Set a valid key: svc setup --yes --upstream ${name} --key-stdin`;
}
