/** One wrong member after the other, for every place of a sample. */

type Step = string | number;

const GONE = Symbol('gone');

/** JSON numbers from here on do not survive being read. */
export const INEXACT = 2 ** 53;

export const ODDITIES: readonly unknown[] = [
  GONE,
  null,
  true,
  0,
  -1,
  0.5,
  1e9,
  INEXACT,
  '',
  'x',
  'x'.repeat(129),
  'x'.repeat(20_000),
  '2026-05-01T12:00:00Z',
  'yesterday',
  'sha256:x',
  [],
  ['x'],
  Array.from({ length: 600 }, (_, at) => `sha256:${String(at).padStart(43, '0')}`),
  {},
  { k: 'note', v: 1, t: ['x'], extra: 1 },
];

export function nameOf(oddity: unknown): string {
  return oddity === GONE ? 'nothing' : JSON.stringify(oddity).slice(0, 40);
}

export function placesIn(value: unknown, path: readonly Step[] = []): (readonly Step[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Object.entries(value).flatMap(([name, member]) =>
    placesIn(member, [...path, Array.isArray(value) ? Number(name) : name]),
  );
  return path.length === 0 ? inner : [path, ...inner];
}

export function withChange(value: unknown, path: readonly Step[], change: unknown): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return change;
  if (Array.isArray(value)) {
    return value.flatMap((element: unknown, at) => {
      if (at !== step) return [element];
      const changed = withChange(element, rest, change);
      return changed === GONE ? [] : [changed];
    });
  }
  const entries = Object.entries(Object(value)).map(([name, member]): [string, unknown] => [
    name,
    name === step ? withChange(member, rest, change) : member,
  ]);
  return Object.fromEntries(entries.filter(([, member]) => member !== GONE));
}
