import type { OpenStore } from './compose-store.ts';

/** Opens the store for a command; only then is the store's code read. */
export const openStore: OpenStore = async (dataFolder, options) => {
  const { openStoreForCli } = await import('./compose-store.ts');
  return openStoreForCli(dataFolder, options);
};
