import { parse } from 'smol-toml';

/** Parses a TOML text; undefined if it is invalid. */
export function parseToml(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
