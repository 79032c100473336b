/** The release, as `svc --version` and the header x-svc-local-proxy show it. */
export const VERSION = '0.1.2';

/** Set when svc is built: a digest of its sources and of the packages in it. */
declare const SVC_BUILD: string | undefined;

/** Tells two builds of one release apart: a proxy still runs the old one after an upgrade. */
export const BUILD = typeof SVC_BUILD === 'string' ? SVC_BUILD : 'unbuilt';
