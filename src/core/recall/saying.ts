import { announcesStep, offersWork, SAYS_WHY } from '../memory/next-steps.ts';
import { hasValue, isRest, kindOf, onlyAsks, sentencesOf, SPECIFIC } from './sentences.ts';

/**
 * Finds the part of a line that informs a reader who sees only this line. An agent ends its answers with its next step,
 * the state of tests and commits, offers, and remarks about the text above. Such a sentence, if quoted, would take
 * the place of an informative one.
 */

const LEAD =
  '(?:(?:ah|alright|also|and|but|excellent|first|good|great|hmm|next|now|ok(?:ay)?|perfect|right|so|sure|then|yes|well)\\b[\\s,.!:—–-]*)*';

/**
 * Matches an opening that agrees or connects: "Good - ", "You're right: ", "So ". The rest of the sentence says the
 * same without it.
 */
const OPENER =
  /^(?:(?:so|also)\b,? |(?:actually|additionally|ah|alright|anyway|basically|confirmed|correct|exactly|fair enough|furthermore|good(?: (?:catch|news|point|question))?|got it|great|ha|hm+|however|i see(?= [–—-])|in short|moreover|no|ok(?:ay)?|oh|right|similarly|sure|understood|ye(?:ah|p|s)|you['’]re (?:absolutely |totally )?(?:correct|right)|außerdem|du hast recht|genau|gut|ja|nein|richtig|stimmt|verstanden|compris|d['’]accord|de plus|donc|en effet|exactement|non|oui|tu as raison|vous avez raison|además|bien|entendido|exacto|sí|tienes razón|ho capito|inoltre|tem razão)(?: ?[,:!.]| [–—-]) )(?=.)|^(?:はい|いいえ|なるほど|つまり|また|是的|好的|对|明白了|你说得对|所以|另外)[、，,。]/iu;

const OPENERS_MAX = 3;

function withoutOpener(line: string): string {
  let rest = line;
  for (let count = 0; count < OPENERS_MAX; count += 1) rest = rest.replace(OPENER, '');
  return rest;
}

/** Announcements of the agent's next step in scripts without spaces; announcesStep() has those of other languages. */
const ANNOUNCES = [
  /^(?:好的?|现在|接下来|首先|那么|[，,。])*(?:让我|我来|我将|我会先|我先)/u,
  /^(?:では|次に|まず|それでは|これから)[、,]?.*(?:ます|しましょう)[。]?$/u,
];

/** Matches the beginning of sentences that mostly say what the agent worked on, but not what it saw or changed. */
const NARRATES = new RegExp(
  `^${LEAD}(?:i (?:can )?(?:see|found|understand|notice)|i['’]ve (?:(?:already|also|just|now|successfully) )?(?:added|addressed|completed|created|fixed|found|implemented|launched|read|removed|reviewed|started|updated)|found (?:it|another|the)|here (?:is|are)|here['’]s)\\b`,
  'i',
);

/** Patterns of sentences whose subject is in the sentence before. */
const POINTS_BACK = [
  // Matches sentences about a case that was named before: "In some cases it is inconsistent.", "Ideally, this gives 4."
  /^(?:currently|ideally|in \p{L}+ cases|normally|usually),? (?:it|they|this|that)\b|^if so\b|^the (?:short )?answer is\b/iu,
  // Matches sentences that continue the one before: "Or to keep the list.", "But not on the quay."
  /^(?:(?:and|but|or|nor|then|otherwise|even (?:then|so)|und|oder|aber|sondern|denn|et|ou|mais|puis|pero|sino|però)[, ]|(?:そして|または|しかし|でも|それから|而且|或者|但是|然后|不过|并且))/iu,
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:it(?! (?:turns out|seems (?:that|like)|appears|is (?:important|possible|necessary|better|worth)))|they|he|she|both|neither|the (?:former|latter|same (?:thing|issue|applies|(?:\w+ )?(?:should|must|can|could|will|would|needs?|applies|goes|happens|holds))))(?:['’](?:s|re|ll|d|ve))?\s/i,
  // Matches "this" and "that" in front of a verb: "that means", "this fixed the crash", "these were".
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:thats\b|(?:this|that|these|those)(?:['’](?:s|re)\b|\s(?:is|are|was|were|can|could|do|does|did|gave|had|has|have|made|may|might|must|should|will|would|also|now|only|too|and|ones?|way)\b)|(?:this|that)\s\p{Ll}+(?:(?<![su])s|ed)\b)/iu,
  /^(?:(?:und|aber|also|jetzt|nun)\s+)*(?:es|das|dies)\s+(?:ist|sind|war|wird|hat|funktioniert|geht|bedeutet|läuft|kann|muss|sollte|heißt|behebt|passiert)\b/iu,
  /^(?:(?:et|mais|donc)\s+)*(?:c['’](?:est|était)|ce sont|ça|cela|ceci|il(?! (?:faut|y a|n['’]y))|elle|ils|elles)(?![\p{L}\p{N}])/iu,
  /^(?:(?:y|pero|e|ma|mas)\s+)*(?:esto|eso|estos|estas|isso|isto|questo|ciò)\s+\p{L}/iu,
  /^(?:但|所以|因此|而且|，)*(?:这|那|它|它们|这些|那些)(?:是|会|就|样|意味|可以|已|不|也|里|能)/u,
  /^(?:これ|それ|あれ)(?:は|が|で|により|によって)/u,
];

/**
 * Matches a request about something that was named before: "is this right?", "the other one", "go ahead", "one of them
 * is red".
 */
const REQUEST_POINTS_BACK =
  /^(?:(?:(?:am|are|is|was|were|do|does|did|has|have|if|or|what|how) )*(?:it|its|this|that|these|those|they|them|he|she|same)|the (?:same|other|last|first|second|next)(?: \w+)?|like|since|which|because|or|as far as|go ahead|i also|in terms of|obviously|one of them|seems|wondering)\b/i;

/**
 * Words that name nothing. A sentence with a word of STATUS only reports how a step went if, apart from numbers and
 * hashes, it has no other words than these, or at most STATUS_NAMES_MAX others without a value (see hasValue).
 */
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
/** Matches words of which a sentence needs at least one to count as a status by STATUS_WORDS. */
const STATUS =
  /\b(?:tests?|build\w*|lint\w*|ci|pass(?:es|ed|ing)?|commit(?:s|ted)?|push(?:ed)?|merged|done|compil\w+|green|verified|finished|complete[d]?|ready|type ?checks?|fertig|erfolgreich|terminé|réussi|pruebas|pasan|compila|listo|testes|passano|fatto|work(?:s|ing)?)\b/iu;
const WITHOUT_BLANKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const STATUS_WITHOUT_BLANKS =
  /^(?:所有|全部)?(?:单元)?(?:测试|构建|检查|代码)?(?:均|都|已)*(?:通过|成功|完成|提交)(?:了)?[。！]?$|^(?:すべての|全ての)?(?:テスト|ビルド|変更|コミット)?(?:は|が|を)?(?:すべて|全て)?(?:通りました|成功しました|完了しました|パスしました|コミットしました)[。！]?$/u;
const HASH = /^[\da-f]{7,40}$/i;

/** Most words of a status that STATUS_WORDS does not have: it may name one thing, as in "All gateway tests pass". */
const STATUS_NAMES_MAX = 1;

/** Matches a report that checks went well. The commands in it name what ran, so they are no finding. */
const WENT_WELL =
  /\b(?:pass(?:ed|ing)?(?! (?:an?|its|the|through|to)\b)|green|clean|succeed(?:s|ed)?|(?:0|no|zero) (?:errors|failures|issues|warnings))\b(?!.*\b(?:if|only|unless|until|when)\b)/iu;
const CODE_OR_ASIDE = /`[^`]*`|\([^()]*\)/g;

/** Matches the beginning of a report of success, if no code follows: "All 12 tests pass, and the branch is pushed." */
const ALL_PASS =
  /^(?:all|both)(?: the| \d+)?(?: [\w-]+){0,2} (?:tests?|checks|specs|suites?) (?:now )?(?:pass(?:ed)?|succeed(?:ed)?|are (?:now )?(?:green|passing))\b(?!.*(?:`|\w=\w))/iu;

// WORK: what the agent's work itself consists of. DONE: what happened to a piece of that work.
const WORK =
  '(?:agents?|beads?|branch(?:es)?|changes|comments?|commits?|conflicts?|issues?|patch|phase|plan|prs?|pull requests?|threads?|tasks?|tickets?|todos?|workers?|worktrees?|[A-Z]{2,}-\\d+)';
const DONE =
  '(?:added|addressed|clean|closed|committed|completed?|created|done|filed|finished|gone|killed|launched|merged|moved|opened|posted|pushed|relaunched|removed|replied to|resolved|saved|spawned|updated)';

/**
 * Patterns of the state of the agent's own work: "Closed completed issue #12", "TIDE-98 is complete.", "No worker was
 * relaunched", "The lock fix is done.", "8 todos remain."
 */
const IS_DONE = [
  new RegExp(
    `^(?:I (?:also )?)?${DONE} (?:[\\w/-]+ ){0,4}?${WORK}(?=$|[^\\w\\s]| (?:[^\\w\\s]|(?:after|and|for|from|in|of|on|to|with)\\b))`,
    'i',
  ),
  new RegExp(
    `^(?:[^\\s\`]+ ){0,4}?${WORK}(?: (?:#?\\d+|file|changes|\`[^\`]+\`))? (?:(?:is|are|was|were|has been|have been|already|now) ){0,2}${DONE}(?=$|[.,;:]| (?:and|as|at|for|from|in|now|on|to|with|[–—-])(?:[: ]|$))`,
    'i',
  ),
  /^(?:the|my|our|your) (?:\S+ ){1,10}?(?:is|are|was|were|has been|have been) (?:already |just |now )?(?:clean|closed|committed|completed?|created|done|finished|gone|green|merged|posted|pushed|updated)(?: and \w+| now)?[.!]$/i,
  /^\d+ (?:(?:more|new|open|pending|remaining) )?(?:commits?|tests?|todos?)\b(?! (?:fail|need|only))|\b(?:review(?:er)?|issue) threads?\b/i,
];
/** Matches a verdict on work without a finding: "Strong test coverage - the new code is well tested." */
const PRAISES =
  /^(?:overall, |net assessment: |(?:the |this )?(?:current )?\S+(?: \S+){0,2} (?:is|are|looks?) (?:already )?(?:correct|fine|good|reasonable|right|solid|sound|surgical|well-\w+)(?: already| now)?(?:$|[.!]| [–—-]|,? (?:and|as|for)\b)|(?:clean|clear|comprehensive|excellent|good|great|nice|solid|strong|thorough)(?: [\w-]+){1,3}(?:$|[.!:]| [–—-]|,? (?:for|with)\b))/i;
/** Says whether a sentence only reports the state of the agent's work. */
function isStatus(sentence: string): boolean {
  if (STATUS_WITHOUT_BLANKS.test(sentence)) return true;
  const isDone = ALL_PASS.test(sentence) || IS_DONE.some((one) => one.test(sentence));
  if (isDone && !SAYS_WHY.test(sentence)) return true;
  if (PRAISES.test(sentence) && !hasValue(sentence)) return true;
  if (WITHOUT_BLANKS.test(sentence) || !STATUS.test(sentence)) return false;
  const said = WENT_WELL.test(sentence) ? sentence.replaceAll(CODE_OR_ASIDE, ' ') : sentence;
  const words = said.split(/[^\p{L}\p{N}=/._-]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const named = words
    .map((word) => word.replace(/[._-]+$/, ''))
    .filter((word) => !/^\d+$/.test(word) && !HASH.test(word))
    .filter((word) => !STATUS_WORDS.has(word.toLowerCase()));
  return named.length === 0 || (named.length <= STATUS_NAMES_MAX && !named.some(hasValue));
}

/** Says whether a sentence is an interjection: "Done!", "Yes.", "Good catch!". */
function isInterjection(sentence: string): boolean {
  const words = WITHOUT_BLANKS.test(sentence) ? sentence.length / 2 : sentence.split(/\s+/).length;
  return words <= INTERJECTION_WORDS && !hasValue(sentence) && /[.!。！]$/u.test(sentence);
}

const INTERJECTION_WORDS = 2;

const MASK = /\[masked: [a-z-]+\]/g;

/** Says whether a sentence has a masked secret and no other value: "Your code is [masked: one-time-code]." */
export function isMasked(sentence: string): boolean {
  const open = sentence.replaceAll(MASK, '');
  return open !== sentence && !hasValue(open);
}

/**
 * Matches what an agent is doing or about to do. The reason for a step is no conclusion about the project: "I'll use
 * the workflow because this is a review", "One glob found nothing, so I'm rerunning it with find instead".
 */
const PLANS = new RegExp(
  `(?:^${LEAD}|[,;:–—-] (?:(?:and|but|now|so) )*)i(?:['’]ll \\p{L}|(?:['’]m| am) (?:(?:also|just|now|still) )*(?!assuming|getting|missing|seeing)\\p{L}+ing\\b)`,
  'iu',
);

/** Says whether an agent's sentence means nothing to a reader without its context. */
export function saysNothing(said: string): boolean {
  const sentence = withoutOpener(said);
  if (PLANS.test(sentence)) return true;
  const tells = SAYS_WHY.test(sentence);
  if (!tells && (announces(sentence) || offersWork(sentence))) return true;
  if (!tells && !SPECIFIC.test(sentence) && NARRATES.test(sentence)) return true;
  return (
    onlyAsks(sentence) ||
    isRest(sentence) ||
    pointsBack(sentence) ||
    isInterjection(sentence) ||
    isMasked(sentence) ||
    isStatus(sentence)
  );
}

/**
 * Says whether a user's sentence was true only when it was said: what the user had just done ("I just deployed
 * it"), what still failed, or that a review had new comments.
 */
export function isOfMoment(sentence: string): boolean {
  const start = sentence.slice(0, MOMENT_CHARS);
  return OF_MOMENT.some((one) => one.test(start));
}

/** Number of characters of a sentence that are searched. A longer one is not quoted, and may have a megabyte. */
const MOMENT_CHARS = 500;

const OF_MOMENT = [
  /^(?:(?:and|but|hmm+|no|ok(?:ay)?|so|yes)[,. ]+)*i(?:['’]m| am| was) (?:(?:currently|just|now|still) )?(?:debugging|looking|testing|trying)\b|^(?:\S+ ){0,4}i(?:['’]ve| have)? just (?:checked|deployed|merged|pushed|ran|restarted|tested|tried)\b/iu,
  /\bstill (?:\S+ ){0,3}(?:broken|failing|failures?)\b|\b(?:is|are) (?:\S+ ){0,2}failing\b(?!.*\bbecause\b)/iu,
  /\bthere(?:['’]?s| are| is| were| seems? to be) (?:\S+ ){0,5}?(?:(?:more|new|review) (?:\S+ )?comments?\b|comments? (?:by|from|on (?:(?:my|our|that|the|this) )?pr)\b)/iu,
];

function announces(sentence: string): boolean {
  return announcesStep(sentence.toLowerCase()) || ANNOUNCES.some((one) => one.test(sentence));
}

/** Says whether the subject of a sentence was named before it. */
export function pointsBack(sentence: string): boolean {
  return POINTS_BACK.some((one) => one.test(sentence));
}

/** Patterns of an object that was named before: "break this up", "look at that, and go on", "don't do this again". */
const OBJECT_BACK = [
  /\s(?:this|that|it|these|those|them|there)(?=$|[,.!?;…]|\s(?:again|also|here|instead|next|now|please|too)\b)/i,
  /^(?:\S+ ){1,4}?(?:this|that|it|these|those|them)\s(?:and|as|at|by|down|for|in|into|on|or|out|so|to|up|with)\b/i,
  // Something that only the conversation has shown: "this option", "that rule".
  /\s(?:this|these|those) (?!(?:app|branch|codebase|file|folder|machine|package|prs?|project|repo|repository|service|way|week|year)\b)\p{L}|\sthat (?:bug|case|change|comment|feedback|issue|one|part|problem|rule|stuff|task|thing|way)\b/iu,
];

/** Says whether the object of a sentence was named before it. */
export function objectPointsBack(sentence: string): boolean {
  return OBJECT_BACK.some((one) => one.test(sentence));
}

/** Says whether the subject of a user's sentence, or of a title, was named before it; see pointsBack(). */
export function requestPointsBack(sentence: string): boolean {
  return REQUEST_POINTS_BACK.test(sentence) || pointsBack(sentence);
}

const ENDS_AS_QUESTION = /[?？]["'”’)\]]*$/u;

/**
 * Returns the line from its first informative sentence to the last one that is informative or refers back, without an
 * opening such as "Good - "; '' if no sentence is informative. Questions at the end are left out, because they would
 * look unanswered.
 */
export function sayingPart(line: string): string {
  const sentences = sentencesOf(line);
  const first = sentences.findIndex((one) => !saysNothing(one));
  if (first === -1) return '';
  const last = sentences.findLastIndex(
    (one, at) =>
      at === first || (!ENDS_AS_QUESTION.test(one) && (pointsBack(one) || !saysNothing(one))),
  );
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

/** Matches an order that may be a lasting rule, unlike most tasks: "Use tabs", "Run the linter first". */
const RULE = /^(?:use|run|see|set|fix:(?! consider\b))(?!\p{L})/iu;
/** Matches a verb that shows a statement: "Test coverage of the quay is low" is no order. */
const HAS_VERB = /\b(?:is|are|was|were|has|have|had|needs?|must)\b/i;
/** Matches references to text around the line: "Option 1 is longer", "This comment says that the quay is on". */
const NAMES_ABSENT =
  /^option [A-D\d]\b(?!:)|^(?:this|that|these|those|the (?:following|above)) (?!(?:branch|repo|repository|project|package|codebase|service)\b)\p{L}|^(?:dies|jene)[ers]{0,2} \p{L}|^(?:cette?|ces) \p{L}|^est[aeo]s? \p{L}/iu;
/** Matches a line about a single test, "`TestQuay` - verifies the lock". The file of the test says the same. */
const NAMES_TEST =
  /^`?(?:Test[A-Z]\w+|[\w./-]*(?:_test\.\w{1,4}|\.(?:spec|test)\.\w{1,4}))(?::\d+)?`?\s*(?:[–—:-]\s|\()/u;
/** Says whether a line of an agent is a task, or needs the lines around it. */
export function isWeak(line: string): boolean {
  return (
    (kindOf(line) === 'order' && !RULE.test(line) && !HAS_VERB.test(line)) ||
    NAMES_ABSENT.test(line) ||
    NAMES_TEST.test(line)
  );
}

/**
 * Patterns of a list's line without a subject, which the heading of the list names: "Expects a name", "Can find files
 * by time", "Used by both gates". Also of a line that names a line of code but no file: "Line 51: opens the gate".
 */
const SUBJECT_ABOVE = [
  // A verb of the third person is followed by its object; a noun of the same form mostly is not.
  /^(?:(?:already|also|always|correctly|never|now|only|still) )?\p{L}\p{Ll}+(?<!s|[Tt]hi|[Ii]t|lway)s (?:(?:an?|all|any|back|both|each|every|if|it|its|no|the|their|whether)\b|[`"'\d])/u,
  /^(?:does not|doesn['’]t|can) (?:\p{Ll}+ )?\p{Ll}+ /iu,
  /^(?!based\b|compared\b|fixed by\b|need\b)\p{L}\p{Ll}+ed (?:across|after|as|at|before|by|for|from|in|inside|into|on|per|to|when|with)\b[^:]*$/iu,
  /^lines? ~?\d+(?:[–-]\d+)?(?:\s?[:(–—-])/i,
];

/** Matches a reason or a choice. A line with one is quoted even without a subject: "Switched to pnpm because …". */
const GIVES_REASON = /\b(?:because|caused by|due to|instead|rather than|so that)\b/i;

/** Says whether a reader needs the heading above an agent's line to know what the line is about. */
export function hasSubjectAbove(line: string): boolean {
  return !GIVES_REASON.test(line) && SUBJECT_ABOVE.some((one) => one.test(line));
}

/**
 * Matches a line with only one side of a comparison: only advantages, or only the state before a change ("Pros:
 * fast").
 */
export const HALF =
  /^(?:pros?|cons?|advantages?|disadvantages?|upsides?|downsides?|trade-?offs?|vorteile?|nachteile?|avantages?|inconvénients?|ventajas?|desventajas?|vantagens|desvantagens|vantaggi|svantaggi|before(?: (?:the|this) (?:change|fix|patch))?|after|vorher|nachher|avant|après|antes|después|prima|dopo|优点|缺点|メリット|デメリット)\s*[:：(]/iu;

const MARK_OF_LIST = /^(?:(?:\p{Extended_Pictographic}|[✓✔✗✘☐]|\u{FE0F}|\u{200D})\s*)+/u;

/** Removes the signs with which an agent ticks off a list. */
export function withoutTicks(line: string): string {
  // A number or one of these signs at the beginning of a line belongs to the text.
  return /^[\d#*©®]/.test(line) ? line : line.replace(MARK_OF_LIST, '');
}
