import { captureAssistant, captureHuman } from '../core/captures.ts';

/** Long enough that no rule for short texts ends the work early; nobody ever sees it. */
const SAMPLE =
  'The staging database listens on port 6432, and the key of its token is "unset".\n\n';

/**
 * To be called while nobody waits: compiles the rules by which secrets are masked, 10 ms that the
 * first answer would otherwise pay for before its last byte.
 */
export function warmUp(): void {
  captureHuman(SAMPLE);
  captureAssistant(SAMPLE);
}
