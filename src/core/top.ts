/** The keys with the highest values, best first; of equal ones the higher key. Linear but for the best. */
export function highest(values: ReadonlyMap<number, number>, count: number): number[] {
  // Numbers sort natively many times faster than pairs with a comparator.
  const sorted = Float64Array.from(values.values()).toSorted();
  const least = sorted[Math.max(0, sorted.length - count)] ?? -Infinity;
  const best: [number, number][] = [];
  for (const entry of values) if (entry[1] >= least) best.push(entry);
  return best
    .toSorted((a, b) => b[1] - a[1] || b[0] - a[0])
    .slice(0, count)
    .map(([key]) => key);
}

/** Reads "12,3,456" without making 10,000 strings. */
export function eachNumber(text: string, take: (number: number) => void): void {
  let number = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code !== 44) {
      number = number * 10 + code - 48;
      continue;
    }
    take(number);
    number = 0;
  }
  if (text !== '') take(number);
}
