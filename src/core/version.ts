/** The release, for the header x-svc-local-proxy. */
export const VERSION = '0.1.2';

/** Set when svc is built: a digest of its sources and packages. */
declare const SVC_BUILD: string | undefined;

/** Distinguishes builds of a release: after an upgrade a proxy still runs the old one. */
export const BUILD = typeof SVC_BUILD === 'string' ? SVC_BUILD : 'unbuilt';

/** For `svc --version`, so that a user sees which build is installed. */
export const VERSION_AND_BUILD = versionText(VERSION, BUILD);

export function versionText(version: string, build: string): string {
  return `${version} (build ${build})`;
}
