import { isAtLeast, type Readings, type Version } from './settings.ts';

/** Which Claude models check what stands before a thinking block, and whose blocks each of them reads. */

export interface ClaudeModel {
  readonly family: string;
  readonly version: Version;
}

/** `claude-opus-5-5`, `claude-opus-4-5-20251101`, `claude-3-7-sonnet-latest`; undefined for other makers. */
export function claudeModel(name: string): ClaudeModel | undefined {
  if (!name.includes('claude')) return undefined;
  const numbers = [...name.matchAll(/(?<=-)\d{1,2}(?=-|$|\[|@)/g)].map(([digits]) =>
    Number(digits),
  );
  const [, family = 'unknown'] = /(opus|sonnet|haiku|fable|mythos)/.exec(name) ?? [];
  const [major = Infinity, minor = 0] = numbers;
  return { family, version: [major, minor] };
}

/**
 * Fable 5.1, Mythos 5.2, Opus 5.5, Sonnet 5.5, Haiku 5.5 and all that are newer; a family that is not known
 * counts as newer (prefix-checks, supported models, copy of 2026-11; preserved-thinking, 2026-09-26).
 */
export function checksPrefix(model: ClaudeModel, readings: Readings): boolean {
  switch (model.family) {
    case 'fable':
      return isAtLeast(model.version, [5, 1]);
    case 'mythos':
      return isAtLeast(model.version, readings.mythos51IsChecked ? [5, 1] : [5, 2]);
    case 'opus':
    case 'sonnet':
    case 'haiku':
      return isAtLeast(model.version, [5, 5]);
    default:
      return true;
  }
}

/** From Fable 5.2 and Mythos 5.2 on, the age of the account makes no difference (whats-new-fable-5-2, 2026-11-09). */
export function enforcesOnEveryAccount({ family, version }: ClaudeModel): boolean {
  const isKnownLenient =
    ['opus', 'sonnet', 'haiku'].includes(family) && !isAtLeast(version, [5, 6]);
  return !isKnownLenient && isAtLeast(version, [5, 2]);
}

/**
 * A block that the model cannot read is dropped without an error ("Switching models mid-conversation",
 * 2026-09-26): everybody reads the blocks of models without the check; Fable 5.1 and Mythos 5.1 read each
 * other and Opus 5.5. That 5.2 reads 5.1 in the same way is an inference. Blocks of Haiku 5.5 stay valid with every
 * other model, and Haiku 5.5 reads no others (Bedrock, "Preserved thinking", copy of 2026-11).
 */
export function canRead(reader: ClaudeModel, maker: ClaudeModel, readings: Readings): boolean {
  const isSame = reader.family === maker.family && String(reader.version) === String(maker.version);
  if (isSame) return true;
  if (isHaiku55(reader)) return false;
  if (!checksPrefix(maker, readings) || isHaiku55(maker)) return true;
  const isFableOrMythos = ({ family }: ClaudeModel): boolean =>
    family === 'fable' || family === 'mythos';
  if (!isFableOrMythos(reader) || !isAtLeast(reader.version, [5, 1])) return false;
  if (isFableOrMythos(maker)) return isAtLeast(reader.version, maker.version);
  return maker.family === 'opus' && String(maker.version) === '5,5';
}

function isHaiku55({ family, version }: ClaudeModel): boolean {
  return family === 'haiku' && String(version) === '5,5';
}

/**
 * Opus 4.8, Opus 5, Fable 5, Sonnet 5.5 and newer take `role: "system"` among the messages
 * (mid-conversation-system-messages, 2026-08-22).
 */
export function takesSystemMessages({ family, version }: ClaudeModel, readings: Readings): boolean {
  switch (family) {
    case 'opus':
      return isAtLeast(version, [4, 8]);
    case 'sonnet':
      return isAtLeast(version, readings.sonnet5TakesSystem ? [5, 0] : [5, 5]);
    case 'haiku':
      return isAtLeast(version, [5, 5]);
    default:
      return isAtLeast(version, [5, 0]);
  }
}
