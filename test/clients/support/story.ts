/** What the sessions of these tests talk about. */

/** Stated once, in an earlier session. */
export const FACT =
  'Please note: the staging database of this project listens on port 6431 of the host walrus-seven.';
/** The part of it that nobody could guess. */
export const SECRET_OF_FACT = 'walrus-seven';
/** Asked in a later session. */
export const QUESTION = 'On which host and port does the staging database of this project listen?';

export const OTHER_FACT =
  'Please note: the invoices of the bakery are printed by the plotter heron-eleven on Thursdays.';
export const SECRET_OF_OTHER_FACT = 'heron-eleven';
export const OTHER_QUESTION = 'Which plotter prints the invoices of the bakery?';

/** 22 shell calls, one after the other; the bar is 20. */
export const ROUNDS = 22;
export const TOOL_SESSION = `Run the steps one after the other. [[plan=bash:echo step {i} of the session*${ROUNDS}]]`;
export const LAST_STEP = `step ${ROUNDS} of the session`;

/** Half a minute of words: nobody waits for its end. */
export const ENDLESS = 'Tell me everything. [[long=20000]] [[gap=60]] [[think=0]]';
