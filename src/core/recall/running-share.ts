/**
 * Decides whether recall answers an agent. A prompt's signal says how much it has in common with the memory. Recall
 * answers if the signal is higher than that of a certain share of the project's prompts. A fixed threshold that fits
 * one project lets through twice as many needless recalled texts (blocks) in another; a share keeps the same rate in
 * each.
 */

/** How many earlier prompts of the project a new one is compared with. */
export const SIGNALS_MAX = 200;
/** A project with fewer prompts counts as young: a comparison with so few prompts says little. */
export const YOUNG = 20;
/**
 * Least signal for which recall answers in a young project. In each of two measured projects, the share after 20
 * prompts corresponded to a certain signal. This is the higher of the two signals. The memory of a young project is
 * small, so answering nothing costs little.
 */
export const YOUNG_SIGNAL_MIN = 4.5;

/**
 * The number of earlier prompts at which quietShareAt() returns the setting itself. Early prompts need memory more
 * often: on 117 labelled prompts, the position in the session predicts the need with an AUC of 0.64, the signal with
 * 0.69.
 */
const USUAL_AT = 1.5;

/**
 * Returns the share of earlier prompts that must have a lower signal than this one. It is lower than the setting
 * `share` for the first prompts of a session, because a new session knows nothing yet, and higher later.
 * `earlierPrompts`: the number of prompts before this one in the request.
 */
export function quietShareAt(share: number, earlierPrompts: number): number {
  return share ** (2 / (1 + earlierPrompts / USUAL_AT));
}

/**
 * Says whether recall answers a prompt. `earlier`: the signals of the project's last prompts, in any order; a prompt
 * without words of the user's own has no signal. `share`: see quietShareAt(); with 0 every signal above 0 is enough.
 */
export function speaks(signal: number, earlier: readonly number[], share: number): boolean {
  if (signal <= 0) return false;
  if (share === 0) return true;
  if (earlier.length < YOUNG) return signal >= YOUNG_SIGNAL_MIN;
  return shareBelow(signal, earlier) >= share;
}

/** Returns the share of earlier prompts with a lower signal. */
export function shareBelow(signal: number, earlier: readonly number[]): number {
  const below = earlier.filter((one) => one < signal).length;
  return earlier.length === 0 ? 0 : below / earlier.length;
}
