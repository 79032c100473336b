/** The release, which the header x-svc-local-proxy states. */
export const VERSION = '0.1.2';

/** A digest of svc's sources and packages, set when svc is built. */
declare const SVC_BUILD: string | undefined;

/**
 * The build. svc compares it with a running proxy's, because a proxy that was not restarted may be of another build.
 */
export const BUILD = typeof SVC_BUILD === 'string' ? SVC_BUILD : 'unbuilt';

/** The text of `svc --version`, so that a user sees which build is installed. */
export const VERSION_AND_BUILD = versionText(VERSION, BUILD);

export function versionText(version: string, build: string): string {
  return `${version} (build ${build})`;
}
