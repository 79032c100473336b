import { isRecord } from '../bytes/json-fields.ts';
import { isDay, isTime } from '../memory/times.ts';

/**
 * Validates JSON. A shape of an object returns only the members that it names: members() drops others, closed() refuses
 * them. One wrong member makes the whole value invalid. A problem names the path of a value, never its content.
 */

export type Shape<Value> = (value: unknown, place: Place) => Value | undefined;

/** The path of the value that a shape checks, and the list to which it adds problems. */
export interface Place {
  readonly path: string;
  readonly problems: string[];
}

export type Infer<Of> = Of extends Shape<infer Value> ? Value : never;

export type Parsed<Value> =
  | { readonly value: Value; readonly problems?: undefined }
  | { readonly value?: undefined; readonly problems: readonly string[] };

/** Bound on reported problems: a hostile body may have a million. */
const PROBLEMS_MAX = 16;

export function parseShape<Value>(shape: Shape<Value>, value: unknown): Parsed<Value> {
  const problems: string[] = [];
  const parsed = shape(value, { path: '', problems });
  return parsed === undefined ? { problems } : { value: parsed };
}

function wrong({ path, problems }: Place, what: string): undefined {
  if (problems.length < PROBLEMS_MAX) problems.push(path === '' ? what : `${path} ${what}`);
}

export interface TextLimits {
  readonly min?: number;
  /** Bound in UTF-16 units. */
  readonly max?: number;
  readonly pattern?: RegExp;
}

export function text({ min = 0, max = Infinity, pattern }: TextLimits = {}): Shape<string> {
  return (value, place) => {
    if (typeof value !== 'string') return wrong(place, 'is not text');
    if (value.length < min || value.length > max) return wrong(place, 'has a wrong length');
    if (pattern !== undefined && !pattern.test(value)) return wrong(place, 'has a wrong format');
    return value;
  };
}

const TIME = /^(\d{4}-\d\d-\d\d)T(?!24)\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/** A date and time of RFC 3339, kept as text. */
export const time: Shape<string> = (value, place) => {
  const stated = typeof value === 'string' ? value : '';
  const [, day = ''] = TIME.exec(stated) ?? [];
  const isKnown = isDay(day) && isTime(Date.parse(stated));
  return isKnown ? stated : wrong(place, 'is not a date and time');
};

export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value, place) =>
    Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max
      ? Number(value)
      : wrong(place, 'is not a whole number in the allowed range');
}

export const fraction: Shape<number> = (value, place) =>
  typeof value === 'number' && value >= 0 && value <= 1
    ? value
    : wrong(place, 'is not a number in the allowed range');

export const flag: Shape<boolean> = (value, place) =>
  typeof value === 'boolean' ? value : wrong(place, 'is neither true nor false');

export function oneOf<const Member extends string | number | boolean>(
  ...allowed: readonly Member[]
): Shape<Member> {
  return (value, place) =>
    allowed.find((member) => member === value) ?? wrong(place, 'is not one of the allowed values');
}

/** Reads a value with the first shape that accepts it. If none does, the problems are those of the last shape. */
export function eitherOf<Values extends readonly unknown[]>(
  ...shapes: { readonly [At in keyof Values]: Shape<Values[At]> }
): Shape<Values[number]> {
  const list: readonly Shape<Values[number]>[] = shapes;
  return list.reduce(
    (one, other) => (value, place) =>
      one(value, { path: place.path, problems: [] }) ?? other(value, place),
  );
}

export function orNull<Value>(shape: Shape<Value>): Shape<Value | null> {
  return (value, place) => (value === null ? null : shape(value, place));
}

export function listOf<Value>(
  shape: Shape<Value>,
  { min = 0, max }: { readonly min?: number; readonly max: number },
): Shape<readonly Value[]> {
  return (value, place) => {
    if (!Array.isArray(value)) return wrong(place, 'is not a list');
    if (value.length < min || value.length > max) return wrong(place, 'has a wrong length');
    const elements: Value[] = [];
    for (const [index, element] of value.entries()) {
      const { path, problems } = place;
      const parsed = shape(element, { path: `${path}[${index}]`, problems });
      if (parsed === undefined) return undefined;
      elements.push(parsed);
    }
    return elements;
  };
}

type Shapes = Readonly<Record<string, Shape<unknown>>>;
// oxlint-disable-next-line typescript/no-generated-empty-object-type -- A shape without optional members has none.
type NoShapes = Record<never, never>;

type Members<Required extends Shapes, Optional extends Shapes> = {
  readonly [Name in keyof Required]: Infer<Required[Name]>;
} & {
  readonly [Name in keyof Optional]?: Infer<Optional[Name]>;
};

export function members<Required extends Shapes, Optional extends Shapes = NoShapes>(
  required: Required,
  optional?: Optional,
): Shape<Members<Required, Optional>> {
  const shapes = Object.entries<Shape<unknown>>({ ...required, ...optional });
  return (value, place) => {
    if (!isRecord(value)) return wrong(place, 'is not an object');
    const fields = new Map<string, unknown>(Object.entries(value));
    const taken: Record<string, unknown> = {};
    let isWhole = true;
    for (const [name, shape] of shapes) {
      const { path, problems } = place;
      const here = { path: path === '' ? name : `${path}.${name}`, problems };
      if (!fields.has(name) && !Object.hasOwn(required, name)) continue;
      const parsed = fields.has(name) ? shape(fields.get(name), here) : wrong(here, 'is missing');
      if (parsed === undefined) isWhole = false;
      taken[name] = parsed;
    }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Every member was read by its shape.
    return isWhole ? (taken as Members<Required, Optional>) : undefined;
  };
}

/** Makes the shape of an object that may have no other members than these. */
export function closed<Required extends Shapes, Optional extends Shapes = NoShapes>(
  required: Required,
  optional?: Optional,
): Shape<Members<Required, Optional>> {
  const names = new Set(Object.keys({ ...required, ...optional }));
  const open = members(required, optional);
  return (value, place) =>
    isRecord(value) && !Object.keys(value).every((name) => names.has(name))
      ? wrong(place, 'has unknown members')
      : open(value, place);
}

/** Adds a condition to a shape. `what`: the problem that is reported if the condition does not hold. */
export function such<Value>(
  shape: Shape<Value>,
  holds: (value: Value) => boolean,
  what: string,
): Shape<Value> {
  return (value, place) => {
    const parsed = shape(value, place);
    if (parsed === undefined) return undefined;
    return holds(parsed) ? parsed : wrong(place, what);
  };
}
