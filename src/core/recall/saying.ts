import { announcesStep, offersWork, SAYS_WHY } from '../memory/next-steps.ts';
import { hasValue, kindOf, onlyAsks, sentencesOf, SPECIFIC } from './sentences.ts';

/**
 * The part of a line that tells somebody something who was not there. An agent ends its answers with what it does
 * next, with the state of tests and commits, with offers and with remarks about what stood above. Quoted alone
 * such a sentence takes the place of one that says something.
 */

const LEAD =
  '(?:(?:ah|alright|also|and|but|excellent|first|good|great|hmm|next|now|ok(?:ay)?|perfect|right|so|sure|then|yes|well)\\b[\\s,.!:—–-]*)*';

/**
 * Agrees with what was said before, or joins the sentence to it: "Good - ", "You're right: ", "So ". What follows says
 * the same without it.
 */
const OPENER =
  /^(?:(?:so|also)\b,? |(?:actually|additionally|ah|alright|basically|confirmed|correct|exactly|furthermore|good (?:catch|news|point|question)|got it|however|i see(?= [–—-])|in short|moreover|no|ok(?:ay)?|oh|right|sure|understood|yes|you['’]re (?:absolutely |totally )?(?:correct|right)|außerdem|du hast recht|genau|gut|ja|nein|richtig|stimmt|verstanden|compris|d['’]accord|de plus|donc|en effet|exactement|non|oui|tu as raison|vous avez raison|además|bien|entendido|exacto|sí|tienes razón|ho capito|inoltre|tem razão)(?: ?[,:!.]| [–—-]) )(?=.)|^(?:はい|いいえ|なるほど|つまり|また|是的|好的|对|明白了|你说得对|所以|另外)[、，,。]/iu;

const OPENERS_MAX = 3;

function withoutOpener(line: string): string {
  let rest = line;
  for (let count = 0; count < OPENERS_MAX; count += 1) rest = rest.replace(OPENER, '');
  return rest;
}

/** The agent says what it does next, in forms that announcesStep leaves in a memory. */
const ANNOUNCES = [
  new RegExp(
    `^${LEAD}(?:let me(?! know)|(?:i['’]ll|i will|i['’]m going to|i am going to)\\b|(?:continuing|proceeding|starting|moving on) (?:with|to)\\b)`,
    'i',
  ),
  /^(?:and |so )?now (?:for|on to|onto|the \p{L}+ \p{L}+ [–—-])\s?/iu,
  /[,;:–—-] (?:and |but |so )?(?:now )?(?:i['’]m|i am) (?:now |going to )?\p{L}+|[,;:–—-] so (?:i['’]ll|i will|let me)\b/iu,
  /, (?:also|daher|deshalb) (?:führe|prüfe|starte|teste|suche|baue) ich\b|, donc je (?:vais|relance|vérifie|teste|lance)(?!\p{L})|, así que (?:voy|vuelvo|estoy)(?!\p{L})|，(?:所以|因此)?我(?:现在|再|先|来|将|会|正在|重新)/iu,
  /^(?:(?:ok|gut|nun|jetzt|also|zuerst|dann|als nächstes)[,.!]?\s+)*(?:lass mich|ich (?:werde|schaue|sehe mir|prüfe)|schauen wir)\b/iu,
  /^(?:(?:bon|bien|maintenant|ensuite|ok|d['’]abord)[,.!]?\s+)*(?:laissez-moi|je vais|voyons|regardons|passons)(?![\p{L}])/iu,
  /^(?:(?:bien|ahora|luego|primero|vale|ok|agora|ora|poi)[,.!]?\s+)*(?:déjame|déjeme|permíteme|voy a|vamos a|deixe-me|vou|fammi|vediamo|procedo)(?![\p{L}])/iu,
  /^(?:好的?|现在|接下来|首先|那么|[，,。])*(?:让我|我来|我将|我会先|我先)/u,
  /^(?:では|次に|まず|それでは|これから)[、,]?.*(?:ます|しましょう)[。]?$/u,
];

/** The agent says what it looked at, and not what it saw there. */
const NARRATES = new RegExp(
  `^${LEAD}(?:i (?:can )?(?:see|found|understand|notice)|i['’]ve (?:found|launched|read|reviewed|started)|found (?:it|another|the)|here (?:is|are)|here['’]s)\\b`,
  'i',
);

/** Its subject is in the sentence before it. */
const POINTS_BACK = [
  // It goes on with the sentence before it: "Or to keep the list.", "But not on the quay."
  /^(?:(?:and|but|or|nor|then|otherwise|even (?:then|so)|und|oder|aber|sondern|denn|et|ou|mais|puis|pero|sino|però)[, ]|(?:そして|または|しかし|でも|それから|而且|或者|但是|然后|不过|并且))/iu,
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:it(?! (?:turns out|seems (?:that|like)|appears|is (?:important|possible|necessary|better|worth)))|they|he|she|both|neither|the (?:former|latter|same (?:thing|issue|applies|(?:\w+ )?(?:should|must|can|could|will|would|needs?|applies|goes|happens|holds))))(?:['’](?:s|re|ll|d|ve))?\s/i,
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:this|that|these|those)(?:['’]s|['’]re|\s(?:is|are|was|were|means?|works?|worked|fix(?:es|ed)?|happen(?:s|ed)?|makes?|made|gives?|gave|should|would|will|could|can|may|might|must|has|have|had|does|do|did|causes?|caused|lets?|allows?|ensures?|prevents?|keeps?|avoids?|matches|includes?|only|also|now|way|explains?|shows?|confirms?|looks?|seems?|needs?|uses?|adds?|leads?|resolves?|aligns?|requires?|provides?|handles?|covers?|gets?|runs?|breaks?|broke|solves?|appl(?:y|ies|ied)|removes?|creates?|replaces?|and|ones?|too|all)\b)/i,
  /^(?:(?:und|aber|also|jetzt|nun)\s+)*(?:es|das|dies)\s+(?:ist|sind|war|wird|hat|funktioniert|geht|bedeutet|läuft|kann|muss|sollte|heißt|behebt|passiert)\b/iu,
  /^(?:(?:et|mais|donc)\s+)*(?:c['’](?:est|était)|ce sont|ça|cela|ceci|il(?! (?:faut|y a|n['’]y))|elle|ils|elles)(?![\p{L}\p{N}])/iu,
  /^(?:(?:y|pero|e|ma|mas)\s+)*(?:esto|eso|estos|estas|isso|isto|questo|ciò)\s+\p{L}/iu,
  /^(?:但|所以|因此|而且|，)*(?:这|那|它|它们|这些|那些)(?:是|会|就|样|意味|可以|已|不|也|里|能)/u,
  /^(?:これ|それ|あれ)(?:は|が|で|により|によって)/u,
];

/** A request that begins so is about something that was named before it: "is this right?", "the other one". */
const REQUEST_POINTS_BACK =
  /^(?:(?:(?:am|are|is|was|were|isn['’]t|aren['’]t|wasn['’]t|do|does|did|doesn['’]t|has|have|if|or|what|how) )*(?:it|its|this|that|these|those|they|them|he|she|same|about (?:it|this|that))|am i|the (?:same|other|last|first|second|next)(?: \w+)?|like|since|which|because|or|so that|if so|as far as|we know|still (?:some|the|no))\b/i;

/** Where each word is one of these, the sentence reports that a step went well, and names nothing. */
const STATUS_WORDS = new Set(
  `a all and any are as at be been before after build builds building built both changes check checked checks ci clean
  cleanly code commit commits committed compile compiled compiles complete completed correctly deployed done e2e error
  errors everything existing expected fail failed failing failures finally fine finished fmt for formatted format from good
  green have has in integration is issue issues it its lint linter linting lints locally looks make merged new no none
  nothing now of ok on once passed passes passing pass pipeline pr push pushed ran ready regressions remote repo run runs
  running should so specs staged still success successful successfully suite suites succeed succeeds succeeded test tests
  that the them there they this to together too type typecheck types unit up updated verified warning warnings was we were
  with without working works you your zero branch main again also
  alle tests laufen durch erfolgreich fertig der die das und ohne fehler ist sind grün build gebaut bestanden jetzt
  tous les passent réussi sans erreur terminé fait compile maintenant tout est et le la
  todas las pruebas pasan todo listo hecho sin errores compila correctamente está ahora y el los os testes passam tudo pronto
  tutti i test passano fatto senza errori compila tutto è`.split(/\s+/),
);
/** A status is about one of these. */
const STATUS =
  /\b(?:tests?|build\w*|lint\w*|ci|pass(?:es|ed|ing)?|commit(?:s|ted)?|push(?:ed)?|merged|done|compil\w+|green|verified|finished|complete[d]?|ready|type ?checks?|fertig|erfolgreich|terminé|réussi|pruebas|pasan|compila|listo|testes|passano|fatto|work(?:s|ing)?)\b/iu;
const WITHOUT_BLANKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const STATUS_WITHOUT_BLANKS =
  /^(?:所有|全部)?(?:单元)?(?:测试|构建|检查|代码)?(?:均|都|已)*(?:通过|成功|完成|提交)(?:了)?[。！]?$|^(?:すべての|全ての)?(?:テスト|ビルド|変更|コミット)?(?:は|が|を)?(?:すべて|全て)?(?:通りました|成功しました|完了しました|パスしました|コミットしました)[。！]?$/u;
const HASH = /^[\da-f]{7,40}$/i;

/** Besides these words a status may name one thing: "All gateway tests pass". */
const STATUS_NAMES_MAX = 1;

/** A report of success. What follows it is more of the same: "All 12 tests pass, and the branch is pushed." */
const ALL_PASS =
  /^(?:all|both)(?: the| \d+)?(?: [\w-]+){0,2} (?:tests?|checks|specs|suites?) (?:now )?(?:pass(?:ed)?|succeed(?:ed)?|are (?:now )?(?:green|passing))\b(?!.*(?:`|\w=\w))/iu;

/** "Plan posted to the wiki", "TIDE-98 is complete." */
const IS_DONE =
  /^(?:the )?(?:plan|phase|task|issue|ticket|pr|branch|commit|todo|[A-Z]{2,}-\d+)(?: #?\d+)? (?:(?:is|was|has been) (?:now )?)?(?:complete[d]?|done|posted|saved|merged|closed|pushed|finished)\b/i;
/** "The list output works." */
const WORKS =
  /^(?:\S+ ){1,5}(?:now )?(?:works?|is working|looks good)(?: (?:now|fine|well|correctly|as expected))?[.!]$/i;

function isStatus(sentence: string): boolean {
  if (STATUS_WITHOUT_BLANKS.test(sentence)) return true;
  if ((IS_DONE.test(sentence) || ALL_PASS.test(sentence)) && !SAYS_WHY.test(sentence)) return true;
  if (WORKS.test(sentence) && !hasValue(sentence)) return true;
  if (WITHOUT_BLANKS.test(sentence) || !STATUS.test(sentence)) return false;
  const words = sentence.split(/[^\p{L}\p{N}=/._-]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const named = words
    .map((word) => word.replace(/[._-]+$/, ''))
    .filter((word) => !/^\d+$/.test(word) && !HASH.test(word))
    .filter((word) => !STATUS_WORDS.has(word.toLowerCase()));
  return named.length === 0 || (named.length <= STATUS_NAMES_MAX && !named.some(hasValue));
}

/** "Done!", "Yes.", "Good catch!". */
function isInterjection(sentence: string): boolean {
  const words = WITHOUT_BLANKS.test(sentence) ? sentence.length / 2 : sentence.split(/\s+/).length;
  return words <= INTERJECTION_WORDS && !hasValue(sentence) && /[.!。！]$/u.test(sentence);
}

const INTERJECTION_WORDS = 2;

const MASK = /\[masked: [a-z-]+\]/g;

/** Whether the one value of a sentence is a secret that was masked: "Your code is [masked: one-time-code]." */
export function isMasked(sentence: string): boolean {
  const open = sentence.replaceAll(MASK, '');
  return open !== sentence && !hasValue(open);
}

/** Whether a sentence of an agent tells nothing to who was not there. */
export function saysNothing(said: string): boolean {
  const sentence = withoutOpener(said);
  const tells = SAYS_WHY.test(sentence);
  if (!tells && (announces(sentence) || offersWork(sentence) || INVITES.test(sentence)))
    return true;
  if (!tells && !SPECIFIC.test(sentence) && NARRATES.test(sentence)) return true;
  return (
    onlyAsks(sentence) ||
    pointsBack(sentence) ||
    isInterjection(sentence) ||
    isMasked(sentence) ||
    isStatus(sentence)
  );
}

/** "You can test it now": what the person was to look at then. */
const INVITES =
  /^you (?:can|could|may|should)(?: (?:now|then))? (?:test|try|check|verify|see|review) (?:it|this|that|them|the (?:change|fix|result)s?)\b|^you (?:can|should) now\b/i;

function announces(sentence: string): boolean {
  return announcesStep(sentence.toLowerCase()) || ANNOUNCES.some((one) => one.test(sentence));
}

export function pointsBack(sentence: string): boolean {
  return POINTS_BACK.some((one) => one.test(sentence));
}

/** Whether the subject of a person's sentence, or of a title, was named before it. */
export function requestPointsBack(sentence: string): boolean {
  return REQUEST_POINTS_BACK.test(sentence) || pointsBack(sentence);
}

/** The line from its first sentence that says something to its last one; '' where none does. */
export function sayingPart(line: string): string {
  const sentences = sentencesOf(line);
  const first = sentences.findIndex((one) => !saysNothing(one));
  if (first === -1) return '';
  const last = sentences.findLastIndex((one) => pointsBack(one) || !saysNothing(one));
  if (first === 0 && last === sentences.length - 1) return withoutOpener(line);
  let from = 0;
  let end = 0;
  for (const [at, sentence] of sentences.slice(0, last + 1).entries()) {
    const start = line.indexOf(sentence, end);
    if (at === first) from = start;
    end = start + sentence.length;
  }
  return withoutOpener(line.slice(from, end));
}

/** A rule holds later too, unlike a task: "Use tabs", "Run the linter first". */
const RULE = /^(?:use|run|see|set|fix:)(?!\p{L})/iu;
/** "Test coverage of the quay is low" is no order. */
const HAS_VERB = /\b(?:is|are|was|were|has|have|had|needs?|must)\b/i;
/** What something does, and its name stands above the list: "Verifies the message". */
const NAMELESS =
  /^(?:(?:also|always|never|only|correctly) )?(?:adds|allows|applies|asserts?|catches|clears|combines|compares|computes|contains|converts|creates|deletes|detects|displays|ensures|extracts|fails|fetches|finds|gets|handles|includes|keeps|loads|merges|parses|prevents|provides|reads|reduces|removes|replaces|requires|resolves|returns|saves|sends|shows|skips|supports|triggers|uses|validates|verif(?:y|ies)|wraps|writes)\b(?! (?:is|are|was|were|pass|fail)\b)/i;
/** "The most likely are #1 and #2", "see above": what it names is not quoted with it. */
const NAMES_ABSENT =
  /(?:^|\s)#\d (?:and|or|&) #\d|^(?:this|that|these|those|the (?:following|above)) (?!(?:branch|repo|repository|project|package|codebase|service)\b)\p{L}|\b(?:(?:see|as|mentioned|listed|described) (?:above|below)|the (?:above|following))\b|^(?:dies|jene)[ers]{0,2} \p{L}|^(?:cette?|ces) \p{L}|^est[aeo]s? \p{L}/iu;
/** Where something stands in the code, without what it says there. */
const POINTS_TO_CODE =
  /^`[\w./-]+\.\w{1,4}(?::[^`]*)?`:? (?:[–—-] )?(?:used|called|defined|during|in|at|where|when|for)\b/i;
/** How much was written, which the file shows. */
const COUNTS_LINES = /\(~?\d+ (?:LOC|lines)\b/i;

/** Whether a line of an agent is a task, or names what only the lines around it show. */
export function isWeak(line: string): boolean {
  return (
    (kindOf(line) === 'order' && !RULE.test(line) && !HAS_VERB.test(line)) ||
    NAMELESS.test(line) ||
    NAMES_ABSENT.test(line) ||
    POINTS_TO_CODE.test(line) ||
    COUNTS_LINES.test(line)
  );
}

/** A line that gives only the advantages of something, or only how it was before a change: "Pros: fast". */
export const HALF =
  /^(?:pros?|cons?|advantages?|disadvantages?|upsides?|downsides?|trade-?offs?|vorteile?|nachteile?|avantages?|inconvénients?|ventajas?|desventajas?|vantagens|desvantagens|vantaggi|svantaggi|before|after|vorher|nachher|avant|après|antes|después|prima|dopo|优点|缺点|メリット|デメリット)\s*[:：(]/iu;

/** A menu of the client, a line of a log, a commit, somebody's words in quotation marks, the state of a task. */
export const NO_STATEMENT =
  /^`?\/[a-z][\w:-]*(?: [^`]*)?`?\s*(?:[—–-]|$)|^[Cc]ommit:? `?[\da-f]{7,40}\b|^(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL)\b[: ]|^["“«][^"”»]*["”»][.!?]?$|^(?:\.\.\.|…)/;

const MARK_OF_LIST = /^(?:(?:\p{Extended_Pictographic}|[✓✔✗✘☐]|\u{FE0F}|\u{200D})\s*)+/u;

/** Without the signs with which an agent ticks off a list. */
export function withoutTicks(line: string): string {
  // Digits count as pictures to Unicode, and a number begins many a line.
  return /^[\d#*©®]/.test(line) ? line : line.replace(MARK_OF_LIST, '');
}
