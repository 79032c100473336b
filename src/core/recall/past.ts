/**
 * Recognises a prompt that itself refers to the past: "we had this before", "as last time". Such a prompt very likely
 * needs memory. The word "again" does not count, because it mostly refers to the last minute.
 */

const SUBJECT = `(?:we|i|you)(?:['’]ve| have| had|['’]d)? (?:already |also |just |once |once again |definitely )?`;
const DID =
  '(?:had|have|did|done|saw|seen|discussed|decided|agreed|talked about|spoke about|solved|fixed|tried|used|changed|configured|chose|chosen|built|wrote|set up|ran into|went through|been through|dealt with|looked at|said|mentioned|told you)';
const EARLIER =
  '(?:before\\b(?! (?:we|i|you|the|it|that|this|they|any|each|every|he|she|a|an|commit|push|merg|run|start)\\w*)|already\\b(?= once)|earlier (?:today|this week|this month)|in an? (?:earlier|previous) (?:session|chat)|last (?:time|week|night|month|session)\\b|yesterday\\b|the other day|a while ago|weeks? ago|days? ago|in the past\\b|at some point)';

const PAST = new RegExp(
  [
    `\\b${SUBJECT}${DID}\\b[^.!?\\n]{0,60}?\\b${EARLIER}`,
    `\\b(?:yesterday|last (?:time|week|night|month|session)),? ${SUBJECT}${DID}\\b`,
    `\\b(?:as|like|than|from) (?:we did |you did |i did )?(?:the )?(?:last (?:time|week|session)|yesterday|the previous session)\\b`,
    '\\bwie (?:beim |das )?(?:letzte[ns]? mal|gestern|neulich|letzte woche)\\b|\\bhatten wir (?:das |das doch |doch |so etwas )?(?:schon|bereits)\\b',
    '\\bcomo la (?:última|ultima) vez\\b|\\bcomme la dernière fois\\b|как в прошлый раз|上次|前回|この前',
  ].join('|'),
  'iu',
);

/** Says whether a prompt refers to the past. Pass the user's own words: pasted text does not count. */
export function speaksOfThePast(ownWords: string): boolean {
  return PAST.test(ownWords);
}
