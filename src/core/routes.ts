import type { Dialect } from './dialect.ts';

/**
 * 'model': memory may act. 'relay': the client's bytes go to the upstream of `dialect` untouched.
 * 'local': answered here while the process lives.
 */
export type Route =
  | { readonly kind: 'model'; readonly dialect: Dialect }
  | { readonly kind: 'relay'; readonly dialect: Dialect | undefined }
  | { readonly kind: 'local' };
