/** The parts that the samples of all dialects share. */

export function said(text: string): object {
  return { role: 'user', content: text };
}

/** A member of untyped JSON; a negative index counts from the end. */
export function memberAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let member = value;
  for (const step of path) {
    if (Array.isArray(member) && typeof step === 'number') member = member.at(step);
    else if (typeof member === 'object' && member !== null) member = Reflect.get(member, step);
    else return undefined;
  }
  return member;
}

export function textAt(value: unknown, ...path: readonly (string | number)[]): string {
  const text = memberAt(value, ...path);
  return typeof text === 'string' ? text : '';
}
