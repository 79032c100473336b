import { Command } from 'commander';

/** Commands load their own code when they run: printing a token must not load an HTTP client. */
export function buildProgram(): Command {
  return new Command('svc').exitOverride();
}
