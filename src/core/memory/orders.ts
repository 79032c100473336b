/**
 * Recognises typed text that only steers the agent: fillers ("ok", "continue"), menu numbers ("14"), orders of a few
 * words ("commit this and push it"). Such a text is not stored, but the answer to it may be. A text that names
 * something, sets a rule or gives a reason is stored.
 */

// Filler words: English ones, and the most common of other languages in coding sessions.
const FILLERS =
  'ok okay okey kk k yes yeah yep yup yess y no nope n nah sure fine good great nice cool perfect awesome excellent thanks thank you thx ty please pls plz ' +
  'noted understood got will go on ahead continue proceed next do it that this again retry try more keep going stop wait done hi hello hey ' +
  'ja nein danke weiter bitte nochmal oui non merci si sí gracias continúa sigue hazlo sim não obrigado ' +
  'да нет спасибо продолжай давай 好 好的 好吧 继续 继续吧 是 是的 对 はい 続けて 続けてください お願いします';

const FILLER_WORDS = new Set(FILLERS.split(' '));

// Most words of a text that counts as filler: longer texts of these words mostly say something.
const FILLER_WORDS_MAX = 5;

// Longest text that counts as filler, in characters: five filler words are shorter.
const FILLER_CHARS_MAX = 64;

/** Says whether a text is only filler: "ok", "continue", "yes please". */
export function isFiller(text: string): boolean {
  if (text.length > FILLER_CHARS_MAX) return false;
  const words = wordsOf(text);
  return words.length <= FILLER_WORDS_MAX && words.every((word) => FILLER_WORDS.has(word));
}

/** Words of orders: everyday actions of a session, and small words between them. */
const ORDER_WORDS = new Set(
  (
    `${FILLERS} a an the i me my we us our your u it's its is are was were be been am not and or but so then now just also too to of in on at for from with up out off into ` +
    'back over all both some any each there theres here what whats how when where who why which can could would should shall may might lets let need want like ' +
    'think guess maybe still already once first last second third one two three four five them they these those thing things stuff bit more less everything ' +
    'add address apply ask build check clean close comment comments commit commits committed continue copy create delete deploy do doing does did done find fix fixes fixed ' +
    'finish format get give going handle help implement install issue issues kill lint log look make merge merged move open pause ping plan pr prs pull push pushed read ' +
    'rebase rebuild refactor release remove rename rerun reset resolve restart resume revert review run rerun save see send ship show skip stage start stash stop submit ' +
    'switch take test tests testing todo todos try update upload use verify wait work write yourself it again latest main master branch branches ci code file files change changes ' +
    'error errors bug bugs failing fails failed pass passing works working server app phase step steps task tasks option number applicable valid ready right correct wrong ' +
    'updated saved tried looks seems sounds idea way time today quick quickly sorry oh ah hmm hmmm um uh well hey dude man actually really very much instead sort ' +
    'new double proper explain detail details logic summary message conflict conflicts against onto remote feature show showing shows else missed many much have has had ' +
    'if ive im id youre weve theyre hes thats isnt arent doesnt didnt cant wont question answer agree agreed sense makes doing anything something nothing think thoughts happened happening mean meant sure bump npm pnpm yarn git none ' +
    'mach mache mal das es so und den die der einen alles alle jetzt dann du kannst noch einmal committe committen pushe pushen merge mergen teste testen starte baue lösche prüfe zeig ok'
  ).split(' '),
);
/** Most words of an order: a longer text of these words mostly says something. */
const ORDER_WORDS_MAX = 14;
/** Most words of an order that are not in ORDER_WORDS, such as "staging" in "deploy staging". */
const OTHER_WORDS_MAX = 1;

/** Matches an order in the form of a question: "can we make it a bit wider?" */
const POLITE_ORDER =
  /^(?:(?:ok|okay|yes|yeah|and|so|now|then|hmm+|please|also|great|good)[,. ]{1,2}){0,3}(?:can|could|would|will) (?:you|we|i)\b(?! (?:explain|tell|not|also tell))/i;
/** Matches a word for something on the screen. With it, a polite order may have one more word beyond ORDER_WORDS. */
const POINTS_AT_SOMETHING = /\b(?:this|that|these|those|it|again|them)\b/i;

/**
 * Matches signs of a text worth storing, however short: a rule, a reason, a name, a path, an address, three digits, a
 * letter of another script than Latin.
 */
const SAYS_SOMETHING =
  /\b(?:never|always|do not|don'?t|must|only|because|since|prefer|rather|no longer|remember|every time|from now on|called|named|means|by default|should (?:be|stay|still|not|have|use)|use(?= \w)|without|avoid|keine?|nie|immer|nur|(?:answer|reply|respond|speak|write) in)\b|\bat \d|(?:[`"@/\\_=]|#(?!\d))|\bno (?!problem|worries|need|thanks|idea|more|its?\b|lets?\b|just|we\b|you|the|that|this|please|go\b)\p{L}{4}|\w\.\w|\d{3}|\p{Ll}\p{Lu}|[^\p{scx=Latin}\p{scx=Common}]/u;

/** Matches a subject with its verb: "we deploy on Tuesdays", "tests need Docker", "the key expires in May". */
const STATEMENT =
  /^(?:(?:we|they|he|she)(?! (?:will|should|can|could|need|want|must|have|might|may|also)\b|['’]ll)\b|(?!(?:that|this|it|what|which|who|how|where|here|there|i)\b)\p{L}[\p{L} -]{0,40} (?:needs?|is|are|was|were|has|have|runs?|uses?|belongs?|lives?|owns?|expires?|closes?|opens?|starts?|ends?)\b)/iu;

/** Matches the beginning of an answer to a numbered menu: "5 seems like a great one to tackle". */
const MENU_ANSWER =
  /^#?\d{1,2}(?:(?:,| and| &) ?#?\d{1,2}){0,8}(?=[\s,.!-]|$)(?!\s?(?:%|ms|s\b|kb|mb|gb|px|min|hours?|days?|weeks?|spaces?|tabs?|columns?|characters?|x\b))/i;
/** Matches a size, which is a rule: "2 spaces", "80 columns". */
const SIZE = /\d ?(?:spaces?|tabs?|columns?|characters?|px|[kmg]b)\b/i;
/** Most words of an answer to a menu. */
const MENU_WORDS_MAX = 9;

/** Matches menu answers: numbers, a letter, both ("2a"), a choice of letters ("y/n"), a client's command ("/clear"). */
const MENU_KEY = /^[\s\d.,;:)(-]{0,24}$|^(?:\d{0,2}\w|\w\/\w|\/[a-z-]{2,24})$/;

/** Says whether a text only steers the agent: "14", "8 6", "q", "1 - yeah, 2 - definitely", "commit this". */
export function isOrder(text: string): boolean {
  if (isFiller(text) || MENU_KEY.test(text)) return true;
  if (SAYS_SOMETHING.test(text) || SIZE.test(text)) return false;
  const words = wordsOf(text);
  if (words.length > ORDER_WORDS_MAX) return false;
  if (MENU_ANSWER.test(text) && words.length <= MENU_WORDS_MAX) return true;
  const others = words.filter((word) => !isOrderWord(word));
  // Store a question or statement with any word beyond ORDER_WORDS: the answer may not repeat its subject.
  const isPolite = POLITE_ORDER.test(text);
  const isQuestion = text.includes('?') && !isPolite;
  if (isQuestion || STATEMENT.test(text)) return others.length === 0;
  // Store a text without any word of ORDER_WORDS, because it may be an answer ("postgres").
  const more = isPolite && POINTS_AT_SOMETHING.test(text) ? 1 : 0;
  return others.length < words.length && others.length <= OTHER_WORDS_MAX + more;
}

function isOrderWord(word: string): boolean {
  return (
    ORDER_WORDS.has(word) || /^\d{1,2}$/.test(word) || ORDER_WORDS.has(word.replaceAll(/['’]/g, ''))
  );
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[\s.,!?;:…()*。，！？-]+/u)
    .filter((word) => word !== '');
}
