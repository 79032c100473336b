import { parse } from 'smol-toml';

/** The table that a TOML text says; undefined when it is no valid TOML. */
export function parseToml(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
