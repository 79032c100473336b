import { CONTRADICTED } from './stated-project.ts';
import type { ExchangeStart, Item, ItemTraits, SoFar, StatedFolder } from './view.ts';

/**
 * Splits a conversation into exchanges: a user's message and everything up to the next one. It uses only the items'
 * facts and never reads the body.
 */

export interface Exchange {
  /** The index of the first item, and the index after the last one. Exchanges cover the items without a gap. */
  readonly start: number;
  readonly end: number;
  /** The index of the newest item with human text; undefined for the exchange before the first human text. */
  readonly human: number | undefined;
  /** The user's text; several consecutive messages are joined by a blank line. */
  readonly humanText: string;
  /** True if a part of the human text may come from a tool or a file. */
  readonly isUnverified: boolean;
  /** The assistant's visible texts, joined by a blank line. */
  readonly assistantText: string;
  /** The part of assistantText after the last tool call: the answer itself, without words on the way to it. */
  readonly lastText: string;
  /** True if the assistant has written no text after the newest human text, tool result or tool call. */
  readonly isOpen: boolean;
  /** True if the user stopped the answer, so that the text so far is incomplete. */
  readonly wasInterrupted: boolean;
  /** True if an item calls a tool or answers a call. The call may belong to the exchange before. */
  readonly hasToolState: boolean;
  readonly hasReasoning: boolean;
}

// Caches the exchanges of each list of items, because several steps of a request read the same list.
const GROUPED = new WeakMap<readonly ItemTraits[], readonly Exchange[]>();

/** Returns the exchanges in order. `items` must not change later, because the result is cached. */
export function groupExchanges(items: readonly ItemTraits[]): readonly Exchange[] {
  const known = GROUPED.get(items);
  if (known !== undefined) return known;
  const exchanges = readExchanges(items);
  GROUPED.set(items, exchanges);
  return exchanges;
}

function readExchanges(items: readonly ItemTraits[]): readonly Exchange[] {
  const starts: number[] = [];
  let current = NO_EXCHANGE;
  for (const [index, item] of items.entries()) {
    current = addToExchange(current, item, index);
    if (current.start === index) starts.push(index);
  }
  return starts.map((start, nth) => exchangeOf(items, start, starts[nth + 1] ?? items.length));
}

/**
 * Returns for each answered round the index of the item in which its tool results begin, in ascending order. A round is
 * one step of the assistant: all tool calls that it makes before the first of them has a result. Results may arrive
 * late, and the user's next message may share an item with the last result.
 */
export function answeredRounds(items: readonly Item[]): readonly number[] {
  const starts: number[] = [];
  const roundsById = new Map<string, { isAnswered: boolean }>();
  let newest: { isAnswered: boolean } | undefined;
  for (const [index, { soFar, toolCalls, toolResultIds }] of items.entries()) {
    if (soFar.exchange.start === index) newest = undefined;
    if (toolCalls.length > 0 && newest?.isAnswered !== false) newest = { isAnswered: false };
    for (const { id } of toolCalls) if (newest !== undefined) roundsById.set(id, newest);
    for (const id of toolResultIds) {
      // An id that is missing or of a wrong type reads as '', which matches no other id.
      const round = id === '' ? undefined : roundsById.get(id);
      if (round?.isAnswered !== false) continue;
      round.isAnswered = true;
      starts.push(index);
    }
  }
  return starts;
}

/**
 * Returns the exchange of the item at `end - 1` without the items from `end` on; by default the newest exchange.
 * Undefined if there is no such item. It reads only the items of that exchange, so its time does not depend on the
 * length of the conversation.
 */
export function exchangeBefore(
  items: readonly Item[],
  end: number = items.length,
): Exchange | undefined {
  const start = items[end - 1]?.soFar.exchange.start;
  return start === undefined ? undefined : exchangeOf(items, start, end);
}

/** Reads the items of an exchange. The item at `end` may state that the user stopped the answer. */
function exchangeOf(items: readonly ItemTraits[], start: number, end: number): Exchange {
  let human: number | undefined;
  let humanTexts: string[] = [];
  const assistantTexts: string[] = [];
  let textsBeforeCall = 0;
  let [isUnverified, isOpen, wasInterrupted] = [false, false, false];
  let [hasToolState, hasReasoning, isAnswered] = [false, false, false];
  for (const [at, item] of items.slice(start, end).entries()) {
    const { humanText, assistantText, toolCalls, toolResultIds } = item;
    wasInterrupted ||= item.isInterruption && at > 0;
    // In front of a summary Codex repeats typed texts of the history. They are not new, so drop them.
    if (item.isSummary === true && !isAnswered) humanTexts = [];
    if (toolResultIds.length > 0 || humanText !== '') isOpen = true;
    if (humanText !== '') {
      human = start + at;
      humanTexts.push(humanText);
      isUnverified ||= item.isUnverified === true;
      wasInterrupted = false;
    }
    if (assistantText !== '') {
      assistantTexts.push(assistantText);
      isOpen = false;
    }
    // Text beside a tool call is not the final answer, unless the same item answers the call.
    if (toolCalls.some(({ id }) => !toolResultIds.includes(id))) {
      isOpen = true;
      textsBeforeCall = assistantTexts.length;
    }
    hasToolState ||= toolCalls.length > 0 || toolResultIds.length > 0;
    hasReasoning ||= item.hasReasoning;
    isAnswered ||= isModelWork(item);
  }
  return {
    start,
    end,
    human,
    humanText: humanTexts.join('\n\n'),
    isUnverified,
    assistantText: assistantTexts.join('\n\n'),
    lastText: assistantTexts.slice(textsBeforeCall).join('\n\n'),
    isOpen,
    wasInterrupted: wasInterrupted || items[end]?.isInterruption === true,
    hasToolState,
    hasReasoning,
  };
}

const NO_EXCHANGE: ExchangeStart = { number: -1, start: -1, hasHuman: false, isAnswered: false };

const NOTHING: SoFar = {
  tokens: 0,
  cacheMs: 0,
  firstHumanText: '',
  systemFolder: undefined,
  systemPlace: undefined,
  userFolder: undefined,
  beginsWithSummary: false,
  latePlace: undefined,
  branch: undefined,
  systemOrder: undefined,
  hasSystem: false,
  hasReference: false,
  humans: undefined,
  hookMarks: undefined,
  holdsFrame: false,
  humanCount: 0,
  textChars: 0,
  exchange: NO_EXCHANGE,
};

/** Returns the facts of a conversation up to an item. `before`: those up to the previous item, if there is one. */
export function addItem(
  before: SoFar | undefined,
  traits: ItemTraits,
  { index, tokens, cacheMs, holdsHookMark }: ItemFacts,
): SoFar {
  const so = before ?? NOTHING;
  const isFirstSystem = traits.role === 'system' && !so.hasSystem;
  const isHuman = traits.humanText !== '';
  return {
    tokens: so.tokens + tokens,
    cacheMs: Math.max(so.cacheMs, cacheMs),
    firstHumanText: so.firstHumanText === '' ? traits.humanText : so.firstHumanText,
    ...systemFolders(so, traits),
    userFolder: so.userFolder ?? userFolder(traits, so.exchange),
    beginsWithSummary: index === 0 ? traits.isSummary === true : so.beginsWithSummary,
    latePlace: latePlace(so, traits),
    branch: so.branch ?? (traits.role === 'system' && !isFirstSystem ? undefined : traits.branch),
    systemOrder: isFirstSystem ? traits.clientOrder : so.systemOrder,
    hasSystem: so.hasSystem || isFirstSystem,
    hasReference: so.hasReference || traits.isReference,
    humans: isHuman ? { index, before: so.humans } : so.humans,
    hookMarks: holdsHookMark ? { index, before: so.hookMarks } : so.hookMarks,
    holdsFrame: so.holdsFrame || traits.holdsFrame === true,
    humanCount: so.humanCount + (isHuman ? 1 : 0),
    textChars: so.textChars + traits.humanText.length + traits.assistantText.length,
    exchange: addToExchange(so.exchange, traits, index),
  };
}

interface ItemFacts {
  readonly index: number;
  readonly tokens: number;
  /** The longest cache lifetime that the item asks for, in milliseconds. */
  readonly cacheMs: number;
  /** True if the item's bytes contain the beginning of a text from svc's hooks. */
  readonly holdsHookMark: boolean;
}

/**
 * Combines the folder of a system message with the folder of earlier system messages. Such a message may contain the
 * output of a hook or a tool, which may quote any document, and it may even come first. So if two system messages name
 * different folders, neither counts. After the first answer the folder stays, because a conversation keeps its space.
 */
function systemFolders(
  so: SoFar,
  { role, workingFolder, place }: ItemTraits,
): Pick<SoFar, 'systemFolder' | 'systemPlace'> {
  const { systemFolder, systemPlace, exchange } = so;
  if (role !== 'system') return { systemFolder, systemPlace };
  if (!so.hasSystem) return { systemFolder: workingFolder, systemPlace: place };
  if (!isOpening(exchange)) return { systemFolder, systemPlace };
  return {
    systemFolder: withoutContradiction(systemFolder, workingFolder),
    systemPlace: withoutContradiction(systemPlace, place),
  };
}

/**
 * Returns the folder that Claude Code states after a compaction. Claude Code keeps the newest messages behind the
 * summary word for word, so an answer may come before the environment that names the folder. If a later environment
 * names another folder, neither counts, because a kept message may quote a document.
 */
function latePlace(
  so: SoFar,
  { role, place, workingFolder, statedBy }: ItemTraits,
): string | undefined {
  if (!so.beginsWithSummary || isOpening(so.exchange)) return so.latePlace;
  const inUser = statedBy === 'claude-code' ? workingFolder : undefined;
  const named = role === 'system' ? place : inUser;
  return so.latePlace === undefined ? named : withoutContradiction(so.latePlace, named);
}

function withoutContradiction(
  first: string | undefined,
  later: string | undefined,
): string | undefined {
  return first === undefined || later === undefined || later === first ? first : CONTRADICTED;
}

function isOpening({ number, isAnswered }: ExchangeStart): boolean {
  return number <= 0 && !isAnswered;
}

// Returns the folder that a user message states. After the first answer it returns none, because clients state their
// environment at the start.
function userFolder(
  { workingFolder, statedBy }: ItemTraits,
  exchange: ExchangeStart,
): StatedFolder | undefined {
  if (workingFolder === undefined || statedBy === undefined) return undefined;
  return isOpening(exchange) ? { folder: workingFolder, statedBy } : undefined;
}

function addToExchange(current: ExchangeStart, traits: ItemTraits, index: number): ExchangeStart {
  const isFirst = current.number === -1;
  const { number, start, hasHuman, isAnswered } =
    isFirst || beginsExchange(traits, current)
      ? { number: current.number + 1, start: index, hasHuman: false, isAnswered: false }
      : current;
  return {
    number,
    start,
    hasHuman: hasHuman || traits.humanText !== '',
    isAnswered: isAnswered || isModelWork(traits),
  };
}

/** Says whether an item begins an exchange. Consecutive user messages without model work between them share one. */
function beginsExchange(
  traits: ItemTraits,
  current: { readonly hasHuman: boolean; readonly isAnswered: boolean },
): boolean {
  return traits.humanText !== '' && (!current.hasHuman || current.isAnswered);
}

/** Says whether the model answered, thought or called a tool in this item, or the item is only a tool's result. */
export function isModelWork({ role, hasReasoning }: ItemTraits): boolean {
  return role === 'assistant' || role === 'tool' || hasReasoning;
}
