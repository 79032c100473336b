import { ServiceFault } from './fault.ts';

/** Finds the operation of a method and a path. */

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
export type Method = (typeof METHODS)[number];

/** A method and a path: `DELETE keys/*`. The star matches one part of a path, which is the route's parameter. */
export type RouteText = `${Method} ${string}`;

export interface Route {
  readonly method: Method;
  readonly path: string;
}

export function routeOf(text: RouteText): Route {
  const method = METHODS.find((one) => text.startsWith(`${one} `)) ?? 'GET';
  return { method, path: text.slice(method.length + 1) };
}

export type FoundRoute<Row> =
  | { readonly row: Row; readonly parameter: string }
  /** The methods of the path, if the method of the call is not among them. */
  | { readonly allow: string };

/** Finds the row of a path. It compares the path as received, without decoding or normalising it. */
export class RouteTable<Row extends Route> {
  readonly #rows: readonly Row[];
  readonly #patterns: ReadonlyMap<string, RegExp>;

  constructor(rows: readonly Row[]) {
    this.#rows = rows;
    const parameter = String.raw`([\w.-]{1,128})`;
    this.#patterns = new Map(
      rows.map(({ path }) => [path, new RegExp(`^${path.replace('*', parameter)}$`)]),
    );
  }

  find(method: string, path: string): FoundRoute<Row> | undefined {
    // A path without a parameter, such as `requests/heads`, wins over `requests/*`.
    const isNamed = this.#patterns.has(path) && !path.includes('*');
    const known = [...this.#patterns].find(([name, pattern]) =>
      isNamed ? name === path : pattern.test(path),
    );
    if (known === undefined) return undefined;
    const [name, pattern] = known;
    const rows = this.#rows.filter((row) => row.path === name);
    const row = rows.find((one) => one.method === method);
    if (row !== undefined) return { row, parameter: pattern.exec(path)?.[1] ?? '' };
    return { allow: rows.map((one) => one.method).join(', ') };
  }

  /** Finds the row. Throws ServiceFault NOT_FOUND or METHOD_NOT_ALLOWED. */
  mustFind(method: string, path: string): { readonly row: Row; readonly parameter: string } {
    const found = this.find(method, path);
    if (found === undefined) throw new ServiceFault('NOT_FOUND', 'There is no such path.');
    if ('row' in found) return found;
    throw new ServiceFault('METHOD_NOT_ALLOWED', 'This path does not support this method.', found);
  }
}

const HEALTH_PATHS = ['/livez', '/readyz', '/health'] as const;
export type HealthPath = (typeof HEALTH_PATHS)[number];

export function healthPath(path: string): HealthPath | undefined {
  return HEALTH_PATHS.find((known) => known === path);
}

/** Path of the public keys for receipts. */
export const KEYS_PATH = '/.well-known/svc/receipt-keys.json';
