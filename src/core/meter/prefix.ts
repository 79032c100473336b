import { hash } from 'node:crypto';
import { asList, asRecord, asText, type Fields } from '../bytes/json-fields.ts';
import type { Item, RequestView, Shell } from '../conversation/view.ts';
import { textsOf } from '../dialects/common.ts';
import { hasLongCache } from '../shortening/pricing.ts';
import { isOmitted } from '../shortening/omissions.ts';
import { MONTH_NAMES } from '../recall/dates.ts';
import type { Placement } from '../recall/injections.ts';
import type { Plan } from '../plan/plan.ts';

/**
 * Compares two requests of a conversation as a provider's prompt cache sees them: tools, system prompt, messages, in
 * this order. A sketch holds digests instead of texts, so no second copy of a body is kept. The digest of an item, like
 * its fingerprint, does not depend on cache marks or on the form of the message's text.
 */
export interface PrefixSketch {
  readonly shell: ShellSketch;
  readonly items: readonly ItemSketch[];
  /** The index of the item with the last cache mark; -1 if the mark is before all items; undefined without a mark. */
  readonly lastMark: number | undefined;
}

interface ShellSketch {
  readonly model: string;
  readonly tools: readonly Named[];
  readonly system: readonly TextSketch[];
  /** Settings on which a cache may depend. */
  readonly settings: readonly Named[];
  /** True if the client marks a part of the shell for the cache. */
  readonly isMarked: boolean;
  /** True if the client sets a mark for the whole request, so that the provider caches up to the newest item. */
  readonly isAutomatic: boolean;
  readonly tokens: number;
}

interface Named {
  readonly name: string;
  readonly digest: string;
}

/** Three digests: of the whole text, of the text without dates, and of the text without dates, numbers and ids. */
interface TextSketch {
  readonly whole: string;
  readonly dateless: string;
  readonly numberless: string;
}

interface ItemSketch {
  readonly digest: string;
  readonly thoughts: readonly string[];
  readonly isThought: boolean;
  readonly isSystem: boolean;
  readonly tokens: number;
  /** A lower bound of the item's content blocks. A provider counts these when it searches backwards from a mark. */
  readonly blocks: number;
  /** True if the item has a cache mark. This and `hasImage` are true only for providers that cache by marks. */
  readonly isMarked: boolean;
  readonly hasImage: boolean;
  /**
   * A sketch of the item's text; undefined after the first TEXT_ITEMS_MAX items, and for more than TEXT_BYTES_MAX
   * bytes.
   */
  readonly text?: TextSketch | undefined;
}

export type Place = 'model' | 'tools' | 'system' | 'message' | 'thinking' | 'settings' | 'marks';
export type Change = 'added' | 'removed' | 'edited' | 'order' | 'date' | 'number';

/** The first place in which two requests differ. */
export interface Difference {
  readonly place: Place;
  readonly change: Change;
  /** The index of the item, or -1 for the part before all items. */
  readonly index: number;
  /** The name of a tool, a tool server (see `isServer`) or a setting. */
  readonly name?: string;
  readonly isServer?: true;
}

export function sketchOf(view: RequestView): PrefixSketch {
  const shell = sketchOfShell(view.shell);
  const items = view.items.map((item, index) => sketchOfItem(view, item, index));
  const last = items.findLastIndex(({ isMarked }) => isMarked);
  const isMarked = last !== -1 || shell.isMarked;
  const lastMark = shell.isAutomatic ? items.length - 1 : last;
  return { shell, items, lastMark: isMarked ? lastMark : undefined };
}

/** Caches the sketch of each shell, which never changes. It saves about a millisecond for 100 kB of tools. */
const SHELLS = new WeakMap<Shell, ShellSketch>();
/** Caches the sketch of each item, which never changes. It saves 50 us or more per request of a long conversation. */
const ITEMS = new WeakMap<Item, ItemSketch>();

const MARK = /,?"cache_control":\{[^}]*\}/g;
/** Number of first items whose text is sketched: in these, clients describe their environment and the date. */
const TEXT_ITEMS_MAX = 4;
/**
 * Most bytes of an item, and most characters of a part of the system prompt, in which svc looks for dates and numbers.
 * A longer one is probably a file.
 */
const TEXT_BYTES_MAX = 1 << 16;

function sketchOfItem({ bytes, dialect }: RequestView, item: Item, index: number): ItemSketch {
  const known = ITEMS.get(item);
  if (known !== undefined) return known;
  const { digest, thoughts, isThought = false, role, tokens, start, end } = item;
  const hasText = index < TEXT_ITEMS_MAX && end - start <= TEXT_BYTES_MAX;
  const text = hasText
    ? sketchOfText(bytes.toString('utf8', start, end).replaceAll(MARK, ''))
    : undefined;
  const isByMarks = hasLongCache(dialect);
  const said = bytes.subarray(start, end);
  const { toolCalls, toolResultIds, assistantText } = item;
  const texts = assistantText === '' ? 0 : 1;
  const sketch = {
    digest,
    thoughts,
    isThought,
    isSystem: role === 'system',
    tokens,
    blocks: Math.max(1, toolCalls.length + toolResultIds.length + thoughts.length + texts),
    isMarked: isByMarks && said.includes('"cache_control"'),
    hasImage: isByMarks && said.includes('"image"'),
    text,
  };
  ITEMS.set(item, sketch);
  return sketch;
}

/**
 * Settings on which a cache entry depends. Sources (2026-11): Anthropic, "Prompt caching", what invalidates the cache;
 * OpenAI, `prompt_cache_diagnostics`.
 */
const SETTINGS = (
  'tool_choice thinking output_config speed reasoning.effort reasoning_effort text.format text.verbosity ' +
  'response_format verbosity service_tier prompt_cache_key'
).split(' ');

/** Those of SETTINGS to which OpenAI binds reasoning ("Keep the prefix unchanged", 2026-11). */
const BOUND_SETTINGS: ReadonlySet<string> = new Set(['reasoning.effort', 'text.format']);

function sketchOfShell(shell: Shell): ShellSketch {
  const known = SHELLS.get(shell);
  if (known !== undefined) return known;
  const { value, tokens } = shell;
  let isMarked = value['cache_control'] !== undefined;
  const digestOf = (part: unknown): string => {
    const json = JSON.stringify(part, (name, member: unknown) => {
      if (name !== 'cache_control') return member;
      isMarked = true;
      return undefined;
    });
    return hash('sha256', json ?? '', 'base64url');
  };
  const system = value['system'] ?? value['instructions'];
  // The digest is not used: this only finds cache marks in the system prompt.
  digestOf(system);
  const sketch = {
    model: asText(value['model']),
    tools: toolsIn(value).map((tool) => ({ name: toolName(tool), digest: digestOf(tool) })),
    // Claude Code changes its billing line in each request, and the provider removes that line.
    system: textsOf(system)
      .filter((text) => !text.startsWith('x-anthropic-billing-header:'))
      .map(sketchOfText),
    settings: SETTINGS.flatMap((name) => {
      const said = settingIn(value, name);
      return said === undefined ? [] : [{ name, digest: digestOf(said) }];
    }),
    isMarked,
    isAutomatic: value['cache_control'] !== undefined,
    tokens,
  };
  SHELLS.set(shell, sketch);
  return sketch;
}

function settingIn(value: Fields, path: string): unknown {
  const [name = '', part] = path.split('.');
  return part === undefined ? value[name] : asRecord(value[name])[part];
}

/** Returns the tools of the prefix. A tool that is loaded later is not part of it (Anthropic, tool search, 2026-11). */
function toolsIn(value: Fields): readonly Fields[] {
  return [...asList(value['tools']), ...asList(value['functions'])]
    .map(asRecord)
    .filter((tool) => tool['defer_loading'] !== true);
}

const NAME_CHARS_MAX = 64;

function toolName(tool: Fields): string {
  const { name, type, server_label: server, function: called } = tool;
  const found = [asText(name), asText(asRecord(called)['name'])].find((text) => text !== '');
  const label = asText(server) === '' ? undefined : `mcp__${asText(server)}__`;
  return (found ?? label ?? asText(type)).slice(0, NAME_CHARS_MAX);
}

const MONTHS = `(?:${MONTH_NAMES})`;
const DATE = new RegExp(
  [
    String.raw`\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?`,
    String.raw`\b\d{1,4}[/.]\d{1,2}[/.]\d{1,4}\b`,
    String.raw`\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?\b`,
    String.raw`\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b`,
    String.raw`\b(?:mon|tue|wed|thu|fri|sat|sun),? (?=\d|${MONTHS})`,
    String.raw`\b${MONTHS}\.? \d{1,2}(?:st|nd|rd|th)?(?:,? \d{4})?\b`,
    String.raw`\b\d{1,2}(?:st|nd|rd|th)? ${MONTHS}(?:,? \d{4})?\b`,
  ].join('|'),
  'gi',
);
const NUMBER = /\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b|\d+/gi;

function sketchOfText(text: string): TextSketch {
  const whole = hash('sha256', text, 'base64url');
  if (text.length > TEXT_BYTES_MAX) return { whole, dateless: whole, numberless: whole };
  const dateless = text.replaceAll(DATE, '');
  return {
    whole,
    dateless: hash('sha256', dateless, 'base64url'),
    numberless: hash('sha256', dateless.replaceAll(NUMBER, ''), 'base64url'),
  };
}

/** Finds the first difference that the client made. Appended items do not count. */
export function differenceOf(before: PrefixSketch, after: PrefixSketch): Difference | undefined {
  return (
    shellDifference(before.shell, after.shell) ??
    itemDifference(before.items, after.items) ??
    settingDifference(before.shell, after.shell) ??
    imageDifference(before.items, after.items)
  );
}

function shellDifference(before: ShellSketch, after: ShellSketch): Difference | undefined {
  if (before === after) return undefined;
  if (before.model !== after.model) return { place: 'model', change: 'edited', index: -1 };
  return toolDifference(before.tools, after.tools) ?? systemDifference(before.system, after.system);
}

function toolDifference(before: readonly Named[], after: readonly Named[]): Difference | undefined {
  const isSame = (one: Named, other: Named): boolean =>
    one.name === other.name && one.digest === other.digest;
  if (firstUnequal(before, after, isSame) === undefined) return undefined;
  const earlier = new Map(before.map(({ name, digest }) => [name, digest]));
  const later = new Map(after.map(({ name, digest }) => [name, digest]));
  const added = after.filter(({ name }) => !earlier.has(name));
  const removed = before.filter(({ name }) => !later.has(name));
  const edited = after.filter(({ name, digest }) => (earlier.get(name) ?? digest) !== digest);
  const [change, named]: [Change, readonly Named[]] =
    edited.length > 0 || (added.length > 0 && removed.length > 0)
      ? ['edited', [...edited, ...added, ...removed]]
      : added.length > 0
        ? ['added', added]
        : removed.length > 0
          ? ['removed', removed]
          : ['order', []];
  return { place: 'tools', change, index: -1, ...nameOf(named) };
}

/** Returns the server's name if all these tools belong to one server, or the name of a single tool; else nothing. */
function nameOf(tools: readonly Named[]): Pick<Difference, 'name' | 'isServer'> {
  const servers = new Set(tools.map(({ name }) => /^mcp__(.+?)(?:__|$)/.exec(name)?.[1] ?? ''));
  const [server] = servers;
  if (servers.size === 1 && server !== undefined && server !== '') {
    return { name: server, isServer: true };
  }
  const [only] = tools;
  return tools.length === 1 && only !== undefined ? { name: only.name } : {};
}

function systemDifference(
  before: readonly TextSketch[],
  after: readonly TextSketch[],
): Difference | undefined {
  const at = firstUnequal(before, after, (one, other) => one.whole === other.whole);
  if (at === undefined) return undefined;
  return { place: 'system', change: textChange(before, after, at), index: -1 };
}

function textChange(
  before: readonly TextSketch[],
  after: readonly TextSketch[],
  at: number,
): Change {
  if (before.length < after.length) return 'added';
  if (before.length > after.length) return 'removed';
  return changeOfText(before[at], after[at]);
}

function changeOfText(one: TextSketch | undefined, other: TextSketch | undefined): Change {
  if (one === undefined || other === undefined) return 'edited';
  if (one.dateless === other.dateless) return 'date';
  return one.numberless === other.numberless ? 'number' : 'edited';
}

function itemDifference(
  before: readonly ItemSketch[],
  after: readonly ItemSketch[],
): Difference | undefined {
  const index = firstUnequal(before, after, isEqualItem) ?? before.length;
  const [one, other] = [before[index], after[index]];
  // A request that is only longer or only shorter than the one before has no difference: items were added, or the user
  // returned to an earlier item.
  if (one === undefined || other === undefined) return undefined;
  const isThinking = one.digest === other.digest || one.isThought || other.isThought;
  if (isThinking) {
    const isFewer = one.isThought || one.thoughts.length > other.thoughts.length;
    return { place: 'thinking', change: isFewer ? 'removed' : 'edited', index };
  }
  const place = one.isSystem && other.isSystem ? 'system' : 'message';
  return { place, change: itemChange(before, after, index), index };
}

function isEqualItem(one: ItemSketch, other: ItemSketch): boolean {
  if (one === other) return true;
  if (one.digest !== other.digest) return false;
  const { thoughts } = one;
  return (
    thoughts.length === other.thoughts.length &&
    thoughts.every((thought, at) => thought === other.thoughts[at])
  );
}

function itemChange(
  before: readonly ItemSketch[],
  after: readonly ItemSketch[],
  index: number,
): Change {
  const [one, other] = [before[index], after[index]];
  const isLater = after.slice(index + 1).some(({ digest }) => digest === one?.digest);
  const wasLater = before.slice(index + 1).some(({ digest }) => digest === other?.digest);
  if (isLater && wasLater) return 'order';
  if (isLater) return 'added';
  if (wasLater) return 'removed';
  return changeOfText(one?.text, other?.text);
}

function settingDifference(before: ShellSketch, after: ShellSketch): Difference | undefined {
  const earlier = new Map(before.settings.map(({ name, digest }) => [name, digest]));
  const later = new Map(after.settings.map(({ name, digest }) => [name, digest]));
  const name = SETTINGS.find((one) => earlier.get(one) !== later.get(one));
  return name === undefined ? undefined : { place: 'settings', change: 'edited', index: -1, name };
}

/**
 * Finds a difference in the number of items with images. An image that is added anywhere makes Anthropic's cache of the
 * messages invalid ("Prompt caching", what invalidates the cache, 2026-11).
 */
function imageDifference(
  before: readonly ItemSketch[],
  after: readonly ItemSketch[],
): Difference | undefined {
  const images = (items: readonly ItemSketch[]): number =>
    items.filter(({ hasImage }) => hasImage).length;
  if (images(before) === images(after)) return undefined;
  return { place: 'settings', change: 'edited', index: -1, name: IMAGES };
}

/** The name by which a change of images is reported, instead of a setting's name. */
const IMAGES = 'images';

/** Number of blocks that Anthropic searches backwards from a cache mark for an entry ("Prompt caching", 2026-11). */
const LOOKBACK_BLOCKS = 20;

/** Returns a difference if no cache mark is near enough to the earlier cache entry for the provider to find it. */
export function markDifference(before: PrefixSketch, after: PrefixSketch): Difference | undefined {
  const [end, mark] = [before.lastMark ?? -1, after.lastMark ?? -1];
  if (end === -1 || end >= after.items.length) return undefined;
  const place = { place: 'marks', index: Math.max(0, mark) } as const;
  if (mark < end) return { ...place, change: 'removed' };
  const since = after.items.slice(end + 1, mark + 1);
  const next = since.findIndex(({ isMarked }) => isMarked);
  const blocks = since
    .slice(0, next === -1 ? since.length : next + 1)
    .reduce((sum, item) => sum + item.blocks, 0);
  return blocks > LOOKBACK_BLOCKS ? { ...place, change: 'added' } : undefined;
}

function firstUnequal<Part>(
  before: readonly Part[],
  after: readonly Part[],
  isSame: (one: Part, other: Part) => boolean,
): number | undefined {
  const most = Math.max(before.length, after.length);
  for (let at = 0; at < most; at += 1) {
    const [one, other] = [before[at], after[at]];
    if (one === undefined || other === undefined || !isSame(one, other)) return at;
  }
  return undefined;
}

/**
 * Says whether the provider binds thinking to the part that changed. Thinking is bound to all items before it.
 * `isThoughtBehind`: true if thinking follows the changed item.
 */
export function isBoundTo(
  { place, index, name = '' }: Difference,
  isThoughtBehind: boolean,
): boolean {
  if (place === 'model' || place === 'thinking') return false;
  if (place === 'settings') return BOUND_SETTINGS.has(name);
  return index < 0 || isThoughtBehind;
}

/** Counts how many items at the beginning are equal in both requests. */
export function commonItems(before: PrefixSketch, after: PrefixSketch): number {
  return firstUnequal(before.items, after.items, hasSameDigest) ?? before.items.length;
}

function hasSameDigest(one: ItemSketch, other: ItemSketch): boolean {
  return one.digest === other.digest;
}

/** Counts items that both requests have at any position, without system messages. */
export function sharedItems(before: PrefixSketch, after: PrefixSketch): number {
  const known = new Set(before.items.map(({ digest }) => digest));
  return after.items.filter(({ digest, isSystem }) => !isSystem && known.has(digest)).length;
}

/** Estimates the cached tokens that both requests carry, at any position. */
export function tokensAgain(before: PrefixSketch, after: PrefixSketch): number {
  // Items after the last mark were never cached.
  const cached = before.items.slice(0, (before.lastMark ?? Infinity) + 1);
  const known = new Set(cached.map(({ digest }) => digest));
  const shell = Math.min(before.shell.tokens, after.shell.tokens);
  return after.items.reduce((sum, { digest, tokens }) => {
    return known.has(digest) ? sum + tokens : sum;
  }, shell);
}

/** Counts the thinking blocks that the client no longer sends, although it still sends the items around them. */
export function droppedThoughts(before: PrefixSketch, after: PrefixSketch): number {
  const same = firstUnequal(before.items, after.items, isEqualItem) ?? before.items.length;
  const rest = after.items.slice(same);
  const kept = new Set(rest.flatMap(({ thoughts }) => thoughts));
  const said = new Set(rest.map(({ digest }) => digest));
  let dropped = 0;
  for (const { thoughts, digest, isThought } of before.items.slice(same)) {
    // Skip an item that was removed together with its thinking: that is an edit of the history.
    if (isThought ? said.has(digest) : !said.has(digest)) continue;
    dropped += thoughts.filter((thought) => !kept.has(thought)).length;
  }
  return dropped;
}

/**
 * svc's changes to a request: for each changed item its index, and a text that describes the changes. Equal changes
 * have equal texts.
 */
export type OwnChanges = ReadonlyMap<number, string>;

export type OwnChange = 'block' | 'outputs' | 'exchanges';

const NOTHING: OwnChanges = new Map();

export function ownChangesOf(
  view: RequestView,
  { edits, shortening }: Plan,
  placements: readonly Placement[],
): OwnChanges {
  if (edits.length === 0) return NOTHING;
  const changes = new Map<number, string>();
  const add = (index: number, change: string): void => {
    changes.set(index, `${changes.get(index) ?? ''}\n${change}`);
  };
  for (const { item, block, form } of placements) {
    const index = view.items.indexOf(item);
    if (index !== -1) add(index, `block ${form} ${block}`);
  }
  const { elided = [], omitted = [] } = shortening ?? {};
  for (const { output, text } of elided) add(output.item, `outputs ${output.mark} ${text.length}`);
  if (omitted.length > 0) {
    for (const [index, item] of view.items.entries()) {
      if (isOmitted(item, omitted)) changes.set(index, '\nexchanges');
    }
  }
  return changes;
}

/**
 * Returns the index of the first item before `end` that svc changed in another way than last time, and what differs;
 * undefined if there is none.
 */
export function ownDifference(
  before: OwnChanges,
  after: OwnChanges,
  end: number,
): { readonly index: number; readonly what: OwnChange } | undefined {
  let first: number | undefined;
  for (const index of new Set([...before.keys(), ...after.keys()])) {
    const isFirst = index < Math.min(end, first ?? Infinity);
    if (isFirst && before.get(index) !== after.get(index)) first = index;
  }
  if (first === undefined) return undefined;
  const [one = '', other = ''] = [before.get(first), after.get(first)];
  const changed = one === '' || other.startsWith(one) ? other.slice(one.length) : `${one}${other}`;
  return { index: first, what: kindOf(changed === '' ? one : changed) };
}

function kindOf(changed: string): OwnChange {
  if (changed.includes('\noutputs ')) return 'outputs';
  return changed.includes('\nexchanges') ? 'exchanges' : 'block';
}
