/** The release, as the header x-svc-local-proxy shows it. */
export const VERSION = '0.1.2';

/** Set when svc is built: a digest of its sources and of the packages in it. */
declare const SVC_BUILD: string | undefined;

/** Tells two builds of one release apart: a proxy still runs the old one after an upgrade. */
export const BUILD = typeof SVC_BUILD === 'string' ? SVC_BUILD : 'unbuilt';

/** As `svc --version` shows it: a person who installs another build sees that it is another one. */
export const VERSION_AND_BUILD = versionText(VERSION, BUILD);

export function versionText(version: string, build: string): string {
  return `${version} (build ${build})`;
}
