import type { ExchangeStart, ItemTraits, SoFar, StatedFolder } from './view.ts';

/** Adds what one item says to what the conversation said before it. */

const NOTHING: SoFar = {
  tokens: 0,
  cacheMs: 0,
  firstHumanText: '',
  systemFolder: undefined,
  isSystemPlace: false,
  userFolder: undefined,
  branch: undefined,
  systemOrder: undefined,
  hasSystem: false,
  hasReference: false,
  humans: undefined,
  humanCount: 0,
  textChars: 0,
  exchange: { number: -1, start: 0, hasHuman: false, isAnswered: false },
};

/**
 * `index` is the item's own, `tokens` its estimate, `cacheMs` the longest cache lifetime that it asks
 * for. `before` undefined: it is the first one.
 */
export function addItem(
  before: SoFar | undefined,
  traits: ItemTraits,
  { index, tokens, cacheMs }: ItemFacts,
): SoFar {
  const so = before ?? NOTHING;
  const isFirstSystem = traits.role === 'system' && !so.hasSystem;
  const isHuman = traits.humanText !== '';
  return {
    tokens: so.tokens + tokens,
    cacheMs: Math.max(so.cacheMs, cacheMs),
    firstHumanText: so.firstHumanText === '' ? traits.humanText : so.firstHumanText,
    // Later system messages carry what hooks and tools print, so they may quote any document.
    systemFolder: isFirstSystem ? traits.workingFolder : so.systemFolder,
    isSystemPlace: isFirstSystem ? traits.isPlace === true : so.isSystemPlace,
    userFolder: so.userFolder ?? userFolder(traits, so.exchange),
    branch: so.branch ?? (traits.role === 'system' && !isFirstSystem ? undefined : traits.branch),
    systemOrder: isFirstSystem ? traits.clientOrder : so.systemOrder,
    hasSystem: so.hasSystem || isFirstSystem,
    hasReference: so.hasReference || traits.isReference,
    humans: isHuman ? { index, before: so.humans } : so.humans,
    humanCount: so.humanCount + (isHuman ? 1 : 0),
    textChars: so.textChars + traits.humanText.length + traits.assistantText.length,
    exchange: addToExchange(so.exchange, traits, index),
  };
}

interface ItemFacts {
  readonly index: number;
  readonly tokens: number;
  readonly cacheMs: number;
}

// A block that comes after an answer is not the environment with which a client begins.
function userFolder(
  { workingFolder, statedBy }: ItemTraits,
  { number, isAnswered }: ExchangeStart,
): StatedFolder | undefined {
  if (workingFolder === undefined || statedBy === undefined) return undefined;
  return number > 0 || isAnswered ? undefined : { folder: workingFolder, statedBy };
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

/** Messages that a person sends in a row, before the model has done anything, are one message. */
export function beginsExchange(
  traits: ItemTraits,
  current: { readonly hasHuman: boolean; readonly isAnswered: boolean },
): boolean {
  return traits.humanText !== '' && (!current.hasHuman || current.isAnswered);
}

/** The model has said, thought or called something, or a call was answered. */
export function isModelWork({ role, hasReasoning }: ItemTraits): boolean {
  return role === 'assistant' || role === 'tool' || hasReasoning;
}
