import { isRecord } from '../../core/bytes/json-fields.ts';
import { invalid } from './ui-routes.ts';

/** Members of a call's body; each has its longest value. */

const REFS_MAX = 500;
const WHOLE = /^m_[a-z2-7]{16}$/;

/** Throws UiRefusal where it is missing or longer. */
export function memberText(body: unknown, name: string, charsMax: number): string {
  const value: unknown = isRecord(body) ? body[name] : undefined;
  if (typeof value !== 'string' || value.trim() === '' || value.length > charsMax) {
    throw invalid(name);
  }
  return value;
}

export function optionalMember(body: unknown, name: string, charsMax: number): string | undefined {
  const value: unknown = isRecord(body) ? body[name] : undefined;
  return value === undefined || value === null || value === ''
    ? undefined
    : memberText(body, name, charsMax);
}

export function isRefs(value: unknown): value is readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > REFS_MAX) return false;
  return value.every((ref) => typeof ref === 'string' && WHOLE.test(ref));
}
