/**
 * The numbers of a provider's `usage`, under their own names, so many as a receipt can hold. Texts are left
 * out, because svc has not checked them.
 */

const DEPTH = 4;
const MEMBERS_MAX = 64;
/** Over all of it. Providers tell some twenty. */
const NUMBERS_MAX = 256;
const NAME = /^\w{1,64}$/;

interface Room {
  left: number;
}

/** Undefined for what is neither an object nor a number. */
export function usageNumbers(value: unknown): unknown {
  return numbersIn(value, DEPTH, { left: NUMBERS_MAX });
}

function numbersIn(value: unknown, depth: number, room: Room): unknown {
  if (room.left <= 0) return undefined;
  if (typeof value === 'number') {
    room.left -= 1;
    return Number.isFinite(value) ? value : undefined;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || depth === 0) {
    return undefined;
  }
  const names = Object.keys(value);
  const members: [string, unknown][] = [];
  let isSame = names.length <= MEMBERS_MAX && Object.getPrototypeOf(value) === Object.prototype;
  let last = '';
  for (const name of isSame ? names : names.slice(0, MEMBERS_MAX)) {
    const given: unknown = Reflect.get(value, name);
    const member = NAME.test(name) ? numbersIn(given, depth - 1, room) : undefined;
    isSame &&= member !== undefined && member === given && name > last;
    last = name;
    if (member !== undefined) members.push([name, member]);
  }
  // A usage is read again where it is stored, and then it has this form already.
  if (isSame) return value;
  // Canonical JSON has this order, so a receipt is written without sorting again.
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
