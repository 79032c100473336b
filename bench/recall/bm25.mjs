/** The baseline: plain BM25 over lines with the product's own words, and nothing else. */

// The defaults of Lucene.
const K1 = 1.2;
const B = 0.75;

export function indexLines(records, termsOf) {
  const lines = records.map((record) => {
    const terms = termsOf(record.text);
    const counts = new Map();
    for (const term of terms) counts.set(term, (counts.get(term) ?? 0) + 1);
    return { record, counts, length: terms.length };
  });
  const frequencies = new Map();
  for (const { counts } of lines) {
    for (const term of counts.keys()) frequencies.set(term, (frequencies.get(term) ?? 0) + 1);
  }
  const average = lines.reduce((sum, { length }) => sum + length, 0) / lines.length;
  const valueOf = (term) => {
    const frequency = frequencies.get(term) ?? 0;
    return Math.log(1 + (lines.length - frequency + 0.5) / (frequency + 0.5));
  };
  /** Best first; lines that share no word with the question are not among them. */
  return (question) => {
    const terms = [...new Set(termsOf(question))];
    return lines
      .map(({ record, counts, length }) => ({
        record,
        score: terms.reduce((sum, term) => {
          const count = counts.get(term) ?? 0;
          const norm = 1 - B + (B * length) / average;
          return sum + (valueOf(term) * count * (K1 + 1)) / (count + K1 * norm);
        }, 0),
      }))
      .filter(({ score }) => score > 0)
      .toSorted((a, b) => b.score - a.score)
      .map(({ record, score }) => ({ ...record, score }));
  };
}
