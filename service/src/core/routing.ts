import { Buffer } from 'node:buffer';
import {
  firstMember,
  keyIs,
  nextMember,
  opensObject,
  opensString,
  parseSpan,
  skipSpace,
  valueEnd,
  type Span,
} from '../../../src/core/bytes/json-scan.ts';
import type { Dialect } from '../../../src/core/conversation/view.ts';
import { isoTime } from '../../../src/core/memory/times.ts';
import { takesModel, type TenantProvider } from './providers.ts';

/**
 * Finds the provider of a request from four facts: its tenant's providers, its dialect, the model in its body, and the
 * models that its key may use. The provider must read the same model as svc, so a body with two models is refused.
 */

export type NamedModel =
  | { readonly kind: 'named'; readonly model: string }
  | { readonly kind: 'missing' }
  /**
   * The body names the model twice, under a key in another case than `model`, or by a value that is empty or no string.
   */
  | { readonly kind: 'ambiguous' }
  /** The bytes are not a JSON object. */
  | { readonly kind: 'unreadable' };

const MODEL = 'model';
/** Length of the longest way to write the key in JSON: every letter as an escape of six bytes, and two quotes. */
const KEY_BYTES_MAX = 6 * MODEL.length + 2;
const CLOSE_BRACE = 0x7d;

/**
 * Reads the model of a body in one pass over its top-level members. `skipped`: the span of a value that was parsed
 * before, such as the list of messages.
 */
export function namedModel(bytes: Buffer, skipped?: Span): NamedModel {
  const open = skipSpace(bytes, 0);
  if (!opensObject(bytes, open)) return { kind: 'unreadable' };
  let found: Span | undefined;
  let end = open + 1;
  let member = firstMember(bytes, open);
  while (member !== undefined) {
    const { key, valueStart } = member;
    end = valueStart === skipped?.start ? skipped.end : valueEnd(bytes, valueStart);
    if (end === -1) return { kind: 'unreadable' };
    if (readsAsModel(bytes, key)) {
      // Some parsers ignore the case of a key, so a key in another case would be a second model.
      if (found !== undefined || !keyIs(bytes, key, MODEL)) return { kind: 'ambiguous' };
      found = { start: valueStart, end };
    }
    member = nextMember(bytes, end);
  }
  const close = skipSpace(bytes, end);
  const isWhole = bytes[close] === CLOSE_BRACE && skipSpace(bytes, close + 1) === bytes.length;
  if (!isWhole) return { kind: 'unreadable' };
  if (found === undefined) return { kind: 'missing' };
  const model = opensString(bytes, found.start) ? parseSpan(bytes, found) : undefined;
  return typeof model === 'string' && model !== ''
    ? { kind: 'named', model }
    : { kind: 'ambiguous' };
}

function readsAsModel(bytes: Buffer, key: Span): boolean {
  const length = key.end - key.start;
  if (length < MODEL.length + 2 || length > KEY_BYTES_MAX) return false;
  const name = parseSpan(bytes, key);
  return typeof name === 'string' && name.toLowerCase() === MODEL;
}

/** Returns the body with the model as its first member. The body must be a JSON object. */
export function withModel(bytes: Buffer, model: string): Buffer {
  const inside = skipSpace(bytes, 0) + 1;
  const isEmpty = bytes[skipSpace(bytes, inside)] === CLOSE_BRACE;
  const member = Buffer.from(`"${MODEL}":${JSON.stringify(model)}${isEmpty ? '' : ','}`);
  return Buffer.concat([bytes.subarray(0, inside), member, bytes.subarray(inside)]);
}

export interface RoutingQuestion {
  readonly providers: readonly TenantProvider[];
  readonly dialect: Dialect;
  /** The model that the body names; undefined if it names none. */
  readonly model: string | undefined;
  /** The models that the key may use; undefined means all models of the providers. */
  readonly keyModels: readonly string[] | undefined;
}

export type RoutedModel =
  | { readonly kind: 'routed'; readonly provider: TenantProvider; readonly model: string }
  /** The tenant has no enabled provider of this dialect. */
  | { readonly kind: 'no-provider' }
  /** The request names no model, and several providers serve its dialect. */
  | { readonly kind: 'no-default' }
  /** No provider serves the model, or the key may not use it. `allowed` lists what the caller may name. */
  | { readonly kind: 'not-allowed'; readonly allowed: readonly string[] };

export function routeModel({
  providers,
  dialect,
  model: named,
  keyModels,
}: RoutingQuestion): RoutedModel {
  const [first, ...others] = servingOf(providers, dialect);
  if (first === undefined) return { kind: 'no-provider' };
  if (named === undefined && others.length > 0) return { kind: 'no-default' };
  const model = named ?? first.defaultModel;
  const serving = [first, ...others];
  const provider = mayName(keyModels, model) ? providerOf(serving, model) : undefined;
  if (provider !== undefined) return { kind: 'routed', provider, model };
  return { kind: 'not-allowed', allowed: entriesFor(serving, keyModels) };
}

export function servingOf(
  providers: readonly TenantProvider[],
  dialect: Dialect,
): readonly TenantProvider[] {
  return providers.filter(({ isEnabled, apiStyle }) => isEnabled && apiStyle === dialect);
}

/** Returns the models that these providers list and the key may name. A prefix is no model, so it is not listed. */
export function listedModels(
  providers: readonly TenantProvider[],
  keyModels: readonly string[] | undefined,
): readonly ListedModel[] {
  const listed = new Map<string, ListedModel>();
  for (const { name: owner, allowedModels, defaultModel, createdAt } of providers) {
    const names = allowedModels.filter((entry) => !entry.endsWith('*'));
    for (const model of new Set([...names, defaultModel])) {
      if (mayName(keyModels, model) && !listed.has(model)) {
        listed.set(model, { model, owner, createdAt });
      }
    }
  }
  return [...listed.values()];
}

export interface ListedModel {
  readonly model: string;
  /** The name of the provider, which the list shows as the owner. */
  readonly owner: string;
  /** Milliseconds since 1970 at which the provider was added. */
  readonly createdAt: number;
}

function mayName(keyModels: readonly string[] | undefined, model: string): boolean {
  return keyModels?.some((entry) => takesModel(entry, model)) ?? true;
}

/** Finds the provider of a model. An exact name wins over a prefix, and a longer prefix over a shorter one. */
function providerOf(
  providers: readonly TenantProvider[],
  model: string,
): TenantProvider | undefined {
  let best: { readonly provider: TenantProvider; readonly rank: number } | undefined;
  for (const provider of providers) {
    for (const entry of provider.allowedModels) {
      if (!takesModel(entry, model)) continue;
      const rank = entry.endsWith('*') ? entry.length : Infinity;
      if (best === undefined || rank > best.rank) best = { provider, rank };
    }
  }
  return best?.provider;
}

function entriesFor(
  providers: readonly TenantProvider[],
  keyModels: readonly string[] | undefined,
): readonly string[] {
  const entries = new Set(providers.flatMap(({ allowedModels }) => allowedModels));
  if (keyModels === undefined) return [...entries];
  const narrowed = new Set<string>();
  for (const entry of entries) {
    for (const own of keyModels) {
      if (isWithin(entry, own)) narrowed.add(entry);
      else if (isWithin(own, entry)) narrowed.add(own);
    }
  }
  return [...narrowed];
}

/** Says whether `other` matches every model that `entry` matches. */
function isWithin(entry: string, other: string): boolean {
  return entry.endsWith('*')
    ? other.endsWith('*') && entry.startsWith(other.slice(0, -1))
    : takesModel(other, entry);
}

/** The form in which a client wants the list of models. svc makes the list from stored data and asks no provider. */
export interface ListForm {
  /** The model to return; undefined means the whole list. */
  readonly id: string | undefined;
  readonly isAnthropic: boolean;
}

/** Returns the answer's body: the list, or the model `id`. Undefined if the list does not have this model. */
export function modelListBody(
  models: readonly ListedModel[],
  { id, isAnthropic }: ListForm,
): object | undefined {
  const form = isAnthropic ? anthropicModel : openAiModel;
  if (id !== undefined) {
    const found = models.find(({ model }) => model === id);
    return found === undefined ? undefined : form(found);
  }
  const data = models.map(form);
  if (!isAnthropic) return { object: 'list', data };
  const [first, last] = [models[0]?.model ?? null, models.at(-1)?.model ?? null];
  return { data, has_more: false, first_id: first, last_id: last };
}

function openAiModel({ model, owner, createdAt }: ListedModel): object {
  return { id: model, object: 'model', created: Math.floor(createdAt / 1000), owned_by: owner };
}

function anthropicModel({ model, createdAt }: ListedModel): object {
  return { type: 'model', id: model, display_name: model, created_at: isoTime(createdAt) };
}
