import { type Fields, isRecord } from './json-fields.ts';
import {
  elementsOf,
  firstMember,
  isSpace,
  nextMember,
  opensList,
  parseJson,
  skipSpace,
  valueEnd,
} from './json-scan.ts';
import { Pace, type Steps } from './steps.ts';

/** JSON.parse takes up to 10 ms for so much, whatever it holds. */
const WHOLE_BYTES_MAX = 1 << 16;

/** The object that is the whole of `bytes`, as JSON.parse reads it; undefined for anything else. */
export function* parseSteps(bytes: Buffer): Steps<Fields | undefined> {
  if (bytes.length <= WHOLE_BYTES_MAX) {
    const value = parseJson(bytes, { start: 0, end: bytes.length })?.value;
    return isRecord(value) ? value : undefined;
  }
  const pace = new Pace();
  const open = skipSpace(bytes, 0);
  const members: [string, unknown][] = [];
  let end = open + 1;
  for (let member = firstMember(bytes, open); member !== undefined;) {
    const key = parseJson(bytes, member.key)?.value;
    end = valueEnd(bytes, member.valueStart);
    const value = end === -1 ? undefined : yield* parseValue(bytes, member.valueStart, end);
    if (value === undefined || typeof key !== 'string') return undefined;
    members.push([key, value.value]);
    if (pace.isDue(end - member.valueStart)) yield;
    member = nextMember(bytes, end);
  }
  return closes(bytes, end) ? Object.fromEntries(members) : undefined;
}

/** Whether only the closing brace follows. */
function closes(bytes: Buffer, end: number): boolean {
  const close = skipSpace(bytes, end);
  if (bytes[close] !== 0x7d) return false;
  let at = close + 1;
  while (isSpace(bytes[at])) at += 1;
  return at === bytes.length;
}

/** A long list is parsed by its elements, which is how tools are written. */
function* parseValue(
  bytes: Buffer,
  start: number,
  end: number,
): Steps<{ readonly value: unknown } | undefined> {
  if (end - start <= WHOLE_BYTES_MAX || !opensList(bytes, start)) {
    return parseJson(bytes, { start, end });
  }
  const values: unknown[] = [];
  const pace = new Pace();
  let at = start + 1;
  for (const element of elementsOf(bytes, { start, end })) {
    at = valueEnd(bytes, element);
    const parsed = at === -1 ? undefined : parseJson(bytes, { start: element, end: at });
    if (parsed === undefined) return undefined;
    values.push(parsed.value);
    if (pace.isDue(at - element)) yield;
  }
  // After the last element comes the end of the list, or this is no JSON.
  return skipSpace(bytes, at) === end - 1 ? { value: values } : undefined;
}
