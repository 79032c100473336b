/**
 * Says by other means than the scanner whether a body is one that svc must understand: JSON.parse for
 * the syntax, a regular expression over the tokens for what JSON.parse does not tell.
 */

const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],:]/gsu;

export function isUnderstandable(text: string, key: 'messages' | 'input'): boolean {
  const value = parsed(text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const list: unknown = Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
  if (!Array.isArray(list) && !(key === 'input' && typeof list === 'string')) return false;
  return keysOf(text, key) === 1 && depthOf(text) <= 512;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/** How often the outermost object of a valid JSON text has the member. */
function keysOf(text: string, key: string): number {
  const tokens = [...text.matchAll(TOKENS)].map(([token]) => token);
  let depth = 0;
  let count = 0;
  tokens.forEach((token, at) => {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    const isKey = depth === 1 && token.startsWith('"') && tokens[at + 1] === ':';
    if (isKey && JSON.parse(token) === key) count += 1;
  });
  return count;
}
