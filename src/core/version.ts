/** The release, as `svc --version` and the header x-svc-local-proxy show it. */
export const VERSION = '0.1.2';
