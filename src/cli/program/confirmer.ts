import { confirm } from '../setup/wizard-prompts.ts';

/**
 * Asks a person on the terminal, and takes Ctrl-C for a no. Questions go to stderr. `isDefault` is the answer of
 * the Enter key.
 */
export function confirmer(isDefault = false): (message: string) => Promise<boolean> {
  const streams = { input: process.stdin, output: process.stderr };
  return (message) => confirm({ message, default: isDefault }, streams).catch(() => false);
}

/** True where a person can answer. */
export function isAsked(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}
