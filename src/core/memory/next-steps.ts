/**
 * Recognises sentences in which the assistant offers work or announces its next step: "Good, now let me check the
 * tests". Each of several small patterns matches one part of a sentence. A single large pattern took V8 40 ms to
 * compile, which delayed the first answer after a start.
 */

/** Says whether a sentence announces a next step. `sentence` must be in lower case. */
export function announcesStep(sentence: string): boolean {
  if (ABROAD.test(sentence)) return true;
  if (afterLeads(sentence).some((rest) => saysNext(rest))) return true;
  const next = afterMatch(NEXT, sentence);
  return next !== undefined && doesWhole(next);
}

/** Matches a courtesy such as "good" or "ok" at the beginning of a sentence. */
const COURTESY =
  /^(?:ok|okay|good|great|perfect|excellent|right|alright|sure|yes|nice|interesting|hmm|got it|understood|done)\b/;
/** Matches the characters between a courtesy and the next word, as in "Good — ". */
const BETWEEN = /^[^\p{L}\p{N}`]{1,4}(?![^\p{L}\p{N}`])/u;
/** Matches one connector, such as "so " or "now, ". */
const CONNECTOR = /^(?:and|so|but|now|next|first|then|also|finally|let me start)\b[,:]? ?/;
/** Most courtesies, most connectors after them, and most words of PACE that are skipped. */
const LEADS_MAX = 2;

/** Returns the sentence, and what remains of it without its first courtesies and connectors. */
function afterLeads(sentence: string): readonly string[] {
  const courteous = repeated(sentence, afterCourtesy);
  return courteous.flatMap((rest) => repeated(rest, (one) => afterMatch(CONNECTOR, one)));
}

/** Returns the sentence, and what remains each time that `without` is applied to the rest, up to LEADS_MAX times. */
function repeated(
  sentence: string,
  without: (rest: string) => string | undefined,
): readonly string[] {
  const rests = [sentence];
  for (let count = 0; count < LEADS_MAX; count += 1) {
    const rest = without(rests.at(-1) ?? '');
    if (rest === undefined) break;
    rests.push(rest);
  }
  return rests;
}

function afterCourtesy(sentence: string): string | undefined {
  const rest = afterMatch(COURTESY, sentence);
  return rest === undefined ? undefined : afterMatch(BETWEEN, rest);
}

/** Returns what follows the match of a pattern at the beginning of a text; undefined if it does not match. */
function afterMatch(pattern: RegExp, text: string): string | undefined {
  const [match] = pattern.exec(text) ?? [];
  return match === undefined ? undefined : text.slice(match.length);
}

/** Matches "let me" with any verb except those that begin an explanation. */
const LET_ME = /^(?:let me|lemme) (?!know|explain|be clear|lay|put it|clarify|answer|remind)\p{L}/u;
const I_WILL =
  /^(?:let me|let's|let us|lemme|i'll|i’ll|i will|i am going to|i'm going to|i’m going to|i(?: also)? (?:need|want|have) to|we(?:'ll| need to)|time to|going to) /;
const PACE =
  /^(?:now|first|next|also|then|just|quickly|carefully|briefly|start by|begin by|go ahead and) /;
const DOING =
  /^(?:adding|analy[sz]ing|building|checking|committing|creating|exploring|fetching|fixing|implementing|investigating|launching|looking|pulling|pushing|reading|rebuilding|researching|reviewing|running|searching|spawning|starting|testing|updating|verifying|waiting|working on|writing)\b/;
const KNOWING =
  /^(?:i(?:'ve| have| now have| can see) (?:now )?(?:all|everything|enough|a (?:clear|full|good|complete|thorough|comprehensive)|the (?:full|complete|whole)|full|comprehensive)|now i (?:understand|have|see|know|can see) )/;
const NEXT = /^(?:now|next|also|then|first)[,:]? /;

/** Matches an announced step in German, Spanish, French and Portuguese. */
const ABROAD =
  /^(?:(?:jetzt|nun|als nächstes|zuerst) )?(?:ich )?(?:schaue|prüfe|führe|starte|suche|öffne|lese|beginne|teste|sehe mir|werde)\b(?: ich)?(?: (?:mir|jetzt|nun|zuerst|als nächstes|die|den|das|dir|alle)\b)|^lass mich\b|^(?:ahora )?(?:déjame|voy a|vamos a)\b|^(?:maintenant,? )?(?:je vais|laisse-moi|laissez-moi)\b|^(?:agora )?(?:vou|deixe-me)\b/;

/** Verbs of the next step, some without their ending: after I_WILL any ending may follow. */
const VERBS =
  `add|address|adjust|correct|help|improve|prepare|draft|tackle|demonstrate|load|analyse|analyze|apply|ask|begin|build|check|clean|commit|compare|confirm|continue|create|debug|delete|dig|do|double-check|edit|examin|explore|extract|fetch|figure|find|fix|gather|get|give|go|grab|handle|have a look|identify|implement|inspect|install|investigat|kill|launch|list|look|make|merge|move|open|parse|plan|proceed|pull|push|put|reread|re-read|rerun|re-run|read|rebase|rebuild|refactor|remove|rename|replace|research|resolve|restart|resume|retry|review|rewrite|run|scan|search|see|set|show|simplify|spawn|stage|start|stop|summarise|summarize|switch|take|test|trace|track|try|understand|update|use|validate|verify|view|wait|walk|work|write`.split(
    '|',
  );

function saysNext(rest: string): boolean {
  if (LET_ME.test(rest) || DOING.test(rest) || KNOWING.test(rest)) return true;
  const willDo = afterMatch(I_WILL, rest);
  if (willDo === undefined) return false;
  return repeated(willDo, (one) => afterMatch(PACE, one)).some((one) =>
    VERBS.some((verb) => one.startsWith(verb)),
  );
}

const WORD_CHARACTER = /^\w/;

/** Says whether a text begins with one of VERBS as a whole word, or with "for the". */
function doesWhole(rest: string): boolean {
  return [...VERBS, 'for the'].some(
    (verb) => rest.startsWith(verb) && !WORD_CHARACTER.test(rest.slice(verb.length)),
  );
}

/** Matches a reason or a finding, which makes a sentence worth storing. "I found the issue!" has neither. */
export const SAYS_WHY =
  /\b(?:because|caused by|due to|since|so that|now that|weil|damit|porque|parce que|instead|rather than|otherwise|unless|therefore|root cause|turns out)\b|\bthe (?:problem|issue|cause|bug|reason)(?::| (?:is|was|lies|seems|with|could|may|might|must)\b)|perché|因为|原因|ため|から/i;

const OFFER =
  /^(?:(?:want|would you like|do you want|shall|should) (?:me|i|us|we|to)\b|(?:let me know|ready (?:for|to|when|whenever)|feel free|just (?:say|tell)|give it a (?:try|shot)|what (?:would you like|should i|else|'s next)|anything else|how would you like|is there anything|waiting for|try (?:it|again|now))\b|möchtest du|soll ich|voulez-vous|souhaitez-vous|¿?quieres que|vuoi che|需要我|要我)/i;

/** Says whether the assistant offers or asks for work: "Want me to push it?" */
export function offersWork(sentence: string): boolean {
  return OFFER.test(sentence);
}
