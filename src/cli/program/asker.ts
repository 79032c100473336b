/** Asks a person on the terminal; undefined without one. `isDefault` is the answer of the Enter key. */
export async function asker(isDefault = false) {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return undefined;
  const { confirm } = await import('../setup/wizard-prompts.ts');
  const streams = { input: process.stdin, output: process.stderr };
  // Ctrl-C means no. Questions go to stderr.
  return (message: string) => confirm({ message, default: isDefault }, streams).catch(() => false);
}
