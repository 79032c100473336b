import type { Clock } from '../ports/clock.ts';
import type { ConversationState } from './conversation-state.ts';

/**
 * Remembers that the provider refused a request of a conversation in both forms: as svc had changed
 * it, and as the client wrote it. The client's own request is at fault there, so sending it twice
 * is useless.
 */

// As long as a change that was refused alone stays off.
const REMEMBERED_MS = 3_600_000;

/** Whether a refused change of this conversation is sent once more without it. */
export function isTriedAgain({ refusedBothAt }: ConversationState, clock: Clock): boolean {
  return refusedBothAt === undefined || clock.monotonic() - refusedBothAt > REMEMBERED_MS;
}
