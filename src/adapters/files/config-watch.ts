import { stampAt } from './config-file.ts';

/**
 * Sees a changed configuration file (R31: within a second). It polls the file's stamp instead of
 * waiting for events. Those get lost when a folder is replaced, on network disks, and when the
 * system has run out of watches.
 */

// Two polls must agree before a change is reported, so that a file is not read half written. At
// worst this takes two periods and the read.
const PERIOD_MS = 250;

export interface ConfigWatch {
  close(): void;
}

/**
 * `stamp` is that of the file as it was read, so that no change in between is missed. `onChange`
 * must not throw.
 */
export function watchConfig(
  file: { readonly path: string; readonly stamp: string },
  onChange: () => void,
): ConfigWatch {
  let told = file.stamp;
  let previous = file.stamp;
  let isLooking = false;
  const look = async (): Promise<void> => {
    const now = await stampAt(file.path);
    const isSettled = now === previous;
    previous = now;
    if (!isSettled || now === told) return;
    told = now;
    onChange();
  };
  const timer = setInterval(() => {
    // A slow disk must not pile up looks.
    if (isLooking) return;
    isLooking = true;
    void look().finally(() => {
      isLooking = false;
    });
  }, PERIOD_MS);
  timer.unref();
  return { close: () => clearInterval(timer) };
}
