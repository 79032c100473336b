/** The release, which the header x-svc-local-proxy states. */
export const VERSION = '0.1.2';

/** A digest of svc's sources and packages, set when svc is built. */
declare const SVC_BUILD: string | undefined;

/** Distinguishes builds of one release, because after an upgrade a running proxy still has the old one. */
export const BUILD = typeof SVC_BUILD === 'string' ? SVC_BUILD : 'unbuilt';

/** The text of `svc --version`, so that a user sees which build is installed. */
export const VERSION_AND_BUILD = versionText(VERSION, BUILD);

export function versionText(version: string, build: string): string {
  return `${version} (build ${build})`;
}
