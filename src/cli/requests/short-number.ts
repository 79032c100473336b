/** 950, 1.2k, 85k, 1.3M */
export function short(tokens: number): string {
  if (tokens < 1000) return String(Math.round(tokens));
  const [value, unit] = tokens < 999_500 ? [tokens / 1000, 'k'] : [tokens / 1_000_000, 'M'];
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)}${unit}`;
}
