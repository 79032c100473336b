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

/** Patterns of announcements of the agent's next step, besides those of announcesStep(). */
const ANNOUNCES = [
  new RegExp(
    `^${LEAD}(?:let me(?! know)|(?:i['’]ll|i should|i will)\\b|(?:i['’]m|i am) (?:(?:already|also|currently|just|now|still) )*(?!assuming|getting|missing|seeing)(?:on|\\p{L}+ing)\\b|(?:continuing|proceeding|starting|moving on) (?:with|to)\\b)`,
    'iu',
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

/** Matches sentences that say what the agent looked at or worked on, but not what it saw or changed. */
const NARRATES = new RegExp(
  `^${LEAD}(?:i (?:can )?(?:see|found|understand|notice)|i['’]ve (?:(?:already|also|just|now|successfully) )?(?:added|addressed|completed|created|fixed|found|implemented|launched|read|removed|reviewed|started|updated)|found (?:it|another|the)|here (?:is|are)|here['’]s)\\b`,
  'i',
);

/** Patterns of sentences whose subject is in the sentence before. */
const POINTS_BACK = [
  // Matches sentences about a case that was named before: "In some cases it is inconsistent.", "Ideally, this gives 4."
  /^(?:currently|ideally|in (?:all|both|many|most|other|some|these|those) cases|normally|right now|sometimes|usually),? (?:it|they|this|that)\b|\bin (?:this|that|such an?) (?:case|situation|scenario|event)[.!]?$|^if so\b|^the (?:short )?answer is\b/i,
  // Matches sentences that continue the one before: "Or to keep the list.", "But not on the quay."
  /^(?:(?:and|but|or|nor|then|otherwise|even (?:then|so)|und|oder|aber|sondern|denn|et|ou|mais|puis|pero|sino|però)[, ]|(?:そして|または|しかし|でも|それから|而且|或者|但是|然后|不过|并且))/iu,
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:it(?! (?:turns out|seems (?:that|like)|appears|is (?:important|possible|necessary|better|worth)))|they|he|she|both|neither|the (?:former|latter|same (?:thing|issue|applies|(?:\w+ )?(?:should|must|can|could|will|would|needs?|applies|goes|happens|holds))))(?:['’](?:s|re|ll|d|ve))?\s/i,
  /^(?:(?:and|but|because|hence|however|now|since|so|still|then|thus)[, ]+)*(?:thats\b|this|that|these|those)(?:['’]s|['’]re|(?<=thats)|\s(?:is|are|was|were|means?|works?|worked|fix(?:es|ed)?|happen(?:s|ed)?|makes?|made|gives?|gave|should|would|will|could|can|may|might|must|has|have|had|does|do|did|causes?|caused|lets?|allows?|ensures?|prevents?|keeps?|avoids?|matches|includes?|only|also|now|way|explains?|shows?|confirms?|looks?|seems?|needs?|uses?|adds?|leads?|resolves?|aligns?|requires?|provides?|handles?|covers?|gets?|runs?|breaks?|broke|solves?|appl(?:y|ies|ied)|removes?|creates?|replaces?|and|ones?|too|all)\b)/i,
  /^(?:(?:und|aber|also|jetzt|nun)\s+)*(?:es|das|dies)\s+(?:ist|sind|war|wird|hat|funktioniert|geht|bedeutet|läuft|kann|muss|sollte|heißt|behebt|passiert)\b/iu,
  /^(?:(?:et|mais|donc)\s+)*(?:c['’](?:est|était)|ce sont|ça|cela|ceci|il(?! (?:faut|y a|n['’]y))|elle|ils|elles)(?![\p{L}\p{N}])/iu,
  /^(?:(?:y|pero|e|ma|mas)\s+)*(?:esto|eso|estos|estas|isso|isto|questo|ciò)\s+\p{L}/iu,
  /^(?:但|所以|因此|而且|，)*(?:这|那|它|它们|这些|那些)(?:是|会|就|样|意味|可以|已|不|也|里|能)/u,
  /^(?:これ|それ|あれ)(?:は|が|で|により|によって)/u,
];

/**
 * Matches a request about something that was named before: "is this right?", "the other one", "go ahead", "one of them
 * is red", "for 312 I agree".
 */
const REQUEST_POINTS_BACK =
  /^(?:(?:(?:am|are|is|was|were|isn['’]t|aren['’]t|wasn['’]t|do|does|did|doesn['’]t|has|have|if|or|what|how) )*(?:it|its|this|that|these|those|they|them|he|she|same|about (?:it|this|that))|am i|once (?:done|finished|merged)|(?:(?:begin|continue|keep|resume|start) (?:to )?)?work(?:ing)? on (?:the )?(?:branch|issue|phase|plan|pr|task|ticket)|the (?:same|other|last|first|second|next)(?: \w+)?|like|since|which|because|or|so that|if so|as far as|we know|still (?:some|the|no)|go ahead|feel free|i also|in terms of|obviously|one of them|seems|wondering|for #?\d+(?! \w+s\b)|(?:first|second|third|next) (?:issue|problem|question))\b/i;

/** If a sentence has only these words, it reports how a step went, and names nothing. */
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
/** Matches words of which each sentence that STATUS_WORDS recognises has at least one. */
const STATUS =
  /\b(?:tests?|build\w*|lint\w*|ci|pass(?:es|ed|ing)?|commit(?:s|ted)?|push(?:ed)?|merged|done|compil\w+|green|verified|finished|complete[d]?|ready|type ?checks?|fertig|erfolgreich|terminé|réussi|pruebas|pasan|compila|listo|testes|passano|fatto|work(?:s|ing)?)\b/iu;
const WITHOUT_BLANKS = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const STATUS_WITHOUT_BLANKS =
  /^(?:所有|全部)?(?:单元)?(?:测试|构建|检查|代码)?(?:均|都|已)*(?:通过|成功|完成|提交)(?:了)?[。！]?$|^(?:すべての|全ての)?(?:テスト|ビルド|変更|コミット)?(?:は|が|を)?(?:すべて|全て)?(?:通りました|成功しました|完了しました|パスしました|コミットしました)[。！]?$/u;
const HASH = /^[\da-f]{7,40}$/i;

/** Most words of a status that are not in STATUS_WORDS: it may name one thing, as in "All gateway tests pass". */
const STATUS_NAMES_MAX = 1;

/** Matches a report that checks went well. The commands in it name what ran, so they are no finding. */
const WENT_WELL =
  /\b(?:pass(?:ed|ing)?(?! (?:an?|its|the|through|to)\b)|green|clean|succeed(?:s|ed)?|(?:0|no|zero) (?:errors|failures|issues|warnings))\b(?!.*\b(?:if|only|unless|until|when)\b)/iu;
const CODE_OR_ASIDE = /`[^`]*`|\([^()]*\)/g;

/** Matches a report of success, with everything after it: "All 12 tests pass, and the branch is pushed." */
const ALL_PASS =
  /^(?:all|both)(?: the| \d+)?(?: [\w-]+){0,2} (?:tests?|checks|specs|suites?) (?:now )?(?:pass(?:ed)?|succeed(?:ed)?|are (?:now )?(?:green|passing))\b(?!.*(?:`|\w=\w))/iu;

/**
 * Patterns of the state of the agent's own work: "Plan posted to the wiki", "TIDE-98 is complete.", "The lock fix is
 * done.", "All review comments have been addressed.", "CI is still pending", "Spawned two workers for the docs".
 */
const IS_DONE = [
  /^(?:the (?:\S+ ){0,3})?(?:plan|patch|phase|task|issue|ticket|bead|pr|branch|commit|todo|[A-Z]{2,}-\d+)(?: #?\d+| `[^`]+`)? (?:(?:already|is|was|has been) (?:already |now )?)?(?:complete[d]?|done|posted|saved|merged|closed|pushed|finished|\d+ commits)\b/i,
  /^(?:the|my|our|your) (?:\S+ ){1,10}?(?:is|are|was|were|has been|have been) (?:already |just |now )?(?:added|applied|clean(?:ed)?|closed|committed|completed?|created|done|finished|gone|green|loaded|merged|posted|pushed|removed|updated)(?: and \w+| now)?[.!]$/i,
  /^(?:all|both)(?: [\w-]+){1,5} (?:are|were|have been) (?:now |already )?(?:addressed|applied|completed|done|fixed|implemented|resolved|updated)\b(?!.*`)/i,
  /\b(?:builds?|checks?|ci|jobs?|reviews?|pipelines?|tests?|workflows?) (?:(?:is|are) )?(?:still (?:pending|queued|running)|in progress|pending|progressing|underway)\b/i,
  // "The crew is working on the mockups", "8 todos remain.", "Moved the todo to `done/` and committed."
  /\b(?:is|are) (?:\w+ )?working on\b|^\d+ (?:(?:more|new|open|pending|remaining) )?(?:commits?|tests?|todos?)\b(?! (?:fail|need|only))/i,
  /^\p{Lu}\p{Ll}+ed\b.{0,200}\band (?:committed|pushed)[.!]?$|\bcommitted as `?[\da-f]{7,40}\b|\b(?:saved|written) to:? [/~]\S+$/u,
  // "Verification: 12 tests pass, the build is clean"
  /^(?:[^,;]{1,100}\b(?:pass(?:es|ed|ing)?|clean|green|succeed(?:s|ed)?)(?:[,;] (?:and )?|[.!]?$)){2,}$/i,
  // "Replied to both threads", "Closed completed issue #12", "I also killed the idle workers", "All 4 threads were resolved."
  /^(?:I (?:also |have |['’]ve )*)?(?:closed|killed|rebased|removed|replied(?: (?:&|and) resolved)?|resolved) (?:\S+ ){0,6}?(?:beads?|conflicts?|issues?|prs?|pull requests?|threads?|tickets?|windows?|workers?|worktrees?)\b|^replied\b|\b(?:review(?:er)?|issue) threads?\b/i,
  // "Thread 12 (naming): fixed", "#4 (naming): skipped", "same as #2 - duplicate comment", "already fixed in `c0ffee1`"
  /^(?:thread #?\d+|#\d+ \()|\bduplicate comment\b|\b(?:already )?fixed in (?:`[\da-f]{7,40}`|[\da-f]{7,40}\b|our commit\b)/i,
  // "Beads changes were pushed.", "No worker was relaunched", "Todo added and PR created: https://…"
  /\b(?:beads?|changes|comments?|issues?|prs?|todos?|workers?|worktrees?)(?: (?:changes|updates))? (?:was|were) (?:closed|created|deleted|filed|opened|posted|pushed|relaunched|removed)\b|^\p{L}+ (?:added|created|filed|opened|posted)(?: and \p{L}+ (?:added|created|filed|opened|posted))?:? https?:/iu,
  // "Already up to date.", "No merge conflicts right now.", "Still waiting on 2 more reviews", "On `main`, up to date."
  /^(?:already up to date|no (?:active )?merge conflicts|no reviews yet|not yet mergeable|standing by|(?:still )?waiting (?:for|on))\b|\b(?:ahead of|behind) `?[\w./-]+`? by \d+ commits?\b|^on `[^`]+`, (?:\S+ ){0,3}?(?:branched|pulled|up to date)\b/i,
  // "I did not request a reviewer", "I left unrelated workers alone."
  /^I (?:(?:did not|didn['’]t) (?:commit|merge|open|push|request|spawn|start|touch)|left (?:\S+ ){1,5}?(?:alone|as is|unchanged|untouched))\b/i,
  /^(?:dispatched|launched|spawned|started) (?:\S+ ){1,4}(?:sub-?)?(?:agents?|workers?)\b|\b(?:sub-?)?(?:agents?|workers?) (?:is|are) (?:active|back|making progress|still (?:going|running|working))\b/i,
];
/** Matches a verdict on work without a finding: "Strong test coverage - the new code is well tested." */
const PRAISES =
  /^(?:overall, |net assessment: |(?:the |this )?(?:current )?\S+(?: \S+){0,2} (?:is|are|looks?) (?:already )?(?:correct|fine|good|reasonable|right|solid|sound|surgical|well-\w+)(?: already| now)?(?:$|[.!]| [–—-]|,? (?:and|as|for)\b)|(?:clean|clear|comprehensive|excellent|good|great|nice|solid|strong|thorough)(?: [\w-]+){1,3}(?:$|[.!:]| [–—-]|,? (?:for|with)\b))/i;
/**
 * Matches a review's praise of one thing or of the whole change: "Excellent separation - the new `quay` package has one
 * task". What follows the praise can be read in the code.
 */
const PRAISES_WHOLE =
  /^(?:(?:clean|comprehensive|excellent|good|great|nice|solid|strong|thorough)(?! enough\b)(?: [\w-]+){1,3}(?::| [–—-] |[.!]$| with\b)|(?:overall, )?(?:the|this|your|our) (?:branch|changes|code|codebase|implementation|pr|(?:pr )?worktree) (?:is|are) (?:\S+ )?(?:clean|cleaner|cleanly|correct|solid|sound|well-\w+)\b(?!.*\b(?:if|only|unless|until|when)\b)|(?:overall, )?(?:the|this|your|our) (?:branch|change|code|pr) improves \S+(?: \S+){0,3} without introducing\b)/i;
/** Matches a count that only a template writes: "6 plan(s) in 4 wave(s)". */
const FROM_TEMPLATE = /\b\d+ \p{L}+\(s\)/u;
/** Matches a guess at how long work will take. */
const ESTIMATES = /^(?:estimated|expected|total) (?:effort|time|duration|complexity)\b/i;
/** Matches a process id, which later belongs to another process: "The gateway runs (PID 7231)". */
const NAMES_PROCESS = /\bPID:? ?\d+/;
/** Matches "The list output works." */
const WORKS =
  /^(?:\S+ ){1,5}(?:now )?(?:works?|is working|looks good)(?: (?:now|fine|well|correctly|as expected))?[.!]$/i;

/** Says whether a sentence only reports the state of the agent's work. */
function isStatus(sentence: string): boolean {
  if (STATUS_WITHOUT_BLANKS.test(sentence)) return true;
  const isDone = ALL_PASS.test(sentence) || IS_DONE.some((one) => one.test(sentence));
  if (isDone && !SAYS_WHY.test(sentence)) return true;
  if (WORKS.test(sentence) && !SPECIFIC.test(sentence)) return true;
  if (PRAISES.test(sentence) && !hasValue(sentence)) return true;
  if (!SAYS_WHY.test(sentence) && PRAISES_WHOLE.test(sentence)) return true;
  if (FROM_TEMPLATE.test(sentence)) return true;
  if (ESTIMATES.test(sentence) || NAMES_PROCESS.test(sentence)) return true;
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
 * Matches what an agent is about to do. The reason for a step is no conclusion about the project: "I'll use the
 * workflow because this is a review", "One glob found nothing, so I'm rerunning it with find instead".
 */
const PLANS = new RegExp(
  `^${LEAD}i['’]ll \\p{L}|[,;:–—] (?:(?:and|but|now|so) )*i['’](?:ll \\p{L}|m (?:(?:also|now) )*(?!assuming|getting|missing|seeing)\\p{L}+ing\\b)`,
  'iu',
);
/** Matches the statement of a cause. It is a conclusion even in a sentence about the next step. */
const FINDS =
  /\b(?:caused by|root cause|turns out)\b|\bthe (?:problem|issue|cause|bug|reason) (?:is|was)\b/i;

/** Says whether an agent's sentence means nothing to a reader without its context. */
export function saysNothing(said: string): boolean {
  const sentence = withoutOpener(said);
  if (PLANS.test(sentence) && !FINDS.test(sentence)) return true;
  const tells = SAYS_WHY.test(sentence);
  if (!tells && (announces(sentence) || offersWork(sentence) || INVITES.test(sentence)))
    return true;
  if (!tells && !SPECIFIC.test(sentence) && NARRATES.test(sentence)) return true;
  return (
    onlyAsks(sentence) ||
    isRest(sentence) ||
    pointsBack(sentence) ||
    isInterjection(sentence) ||
    isMasked(sentence) ||
    isStatus(sentence) ||
    (!tells && REMARKS.test(sentence))
  );
}

/**
 * Matches what an agent says about the conversation or about itself: an apology, a fault of its own, thanks, what the
 * user may think. It informs nobody later.
 */
const REMARKS =
  /^\W{0,2}(?!.* [–—-] )(?:(?:i(?:['’]m| am)? (?:really |so |very )?(?:apologi[sz]e|sorry)|my (?:apologies|bad|mistake)|(?:thank you|thanks) for)\b|i (?:didn['’]t|did not|failed to|forgot to|misread|misunderstood|overlooked|should(?: not|n['’]t)? have)\b|you(?:['’]re| are) (?:(?:absolutely|completely|totally|quite) )?(?:correct|right) to\b|you (?:may|might|probably) (?:already |also )?(?:have|know|want)\b)/iu;

/**
 * Says whether a user's sentence was true only when it was said: what the agent was doing wrong ("you're editing the
 * copy"), what the user had just done ("I just deployed it"), what still failed, or that a review had new comments.
 */
export function isOfMoment(sentence: string): boolean {
  const start = sentence.slice(0, MOMENT_CHARS);
  return OF_MOMENT.some((one) => one.test(start));
}

/** Number of characters of a sentence that are searched. A longer one is not quoted, and may have a megabyte. */
const MOMENT_CHARS = 500;

const OF_MOMENT = [
  /^(?:(?:and|but|hey|hmm+|no|ok(?:ay)?|so|wait)[,. ]+)*(?:(?:looks like|seems?) )?you(?:['’]re| (?:are|(?:have|['’]ve)?(?: just)?)) ?(?:just |still |now )?(?!need|supposed)(?:\p{L}+(?:ed|ing)|broke|did|forgot|made|ran|went|wrote)\b/iu,
  /^(?:(?:and|but|hmm+|no|ok(?:ay)?|so|while|yes)[,. ]+)*i(?:['’]m| am| was) (?:(?:currently|just|now|still) )?(?:back|debugging|going|looking|starting|testing|trying)\b|^(?:\S+ ){0,4}i(?:['’]ve| have)? just (?:checked|committed|deployed|did|exited|got|looked|merged|pushed|ran|restarted|tested|tried)\b/iu,
  /\bstill (?:an? |lots of |many |some |the same )?(?:\S+ ){0,3}(?:broken|errors?|failing|failures?|red)\b|\b(?:is|are) (?:\S+ ){0,2}failing\b(?!.*\bbecause\b)/iu,
  /\b(?:left|there(?:['’]?s| are| is| were| seems? to be)|ha(?:s|ve) come back with) (?:\S+ ){0,5}?(?:(?:more|new|review) (?:\S+ )?(?:comments?|remarks)\b|(?:comments?|remarks) (?:by|from|on (?:(?:my|our|that|the|this) )?pr)\b)/iu,
];

/** Matches "You can test it now", which was only useful at that time. */
const INVITES =
  /^you (?:can|could|may|should)(?: (?:now|then))? (?:test|try|check|verify|see|review) (?:it|this|that|them|the (?:change|fix|result)s?)\b|^you (?:can|should) now\b/i;

function announces(sentence: string): boolean {
  return announcesStep(sentence.toLowerCase()) || ANNOUNCES.some((one) => one.test(sentence));
}

/** Says whether the subject of a sentence was named before it. */
export function pointsBack(sentence: string): boolean {
  return POINTS_BACK.some((one) => one.test(sentence));
}

/** Patterns of an object that was named before: "break this up", "look at that, and go on", "don't do this again". */
const OBJECT_BACK = [
  /^(?:\S+ ){1,4}?(?:this|that|it|these|those|them)(?=$|[,.!?;…]|\s(?:and|again|also|as|at|by|down|for|here|in|instead|into|now|on|or|out|please|so|to|too|up|with|work)\b)/i,
  /\s(?:this|these|those)(?=$|[,.!?;…]|\s(?:again|also|at|by|for|here|in|instead|next|now|on|too)\b)/i,
  /\s(?:that|them|there)(?=$|[,.!?;…]|\s(?:again|also|instead|now|please|too)\b)|^do the same\b/i,
  // Something that only the conversation has shown: "this option", "that rule", "the points you mentioned".
  /\s(?:this|these|those) (?!(?:app|branch|codebase|file|folder|machine|package|prs?|project|repo|repository|service|way|week|year)\b)\p{L}|\sthat (?:bug|case|change|comment|feedback|issue|one|part|problem|rule|stuff|task|thing|way)\b/iu,
  /\byou (?:just |already )?(?:described|listed|mentioned|proposed|said|suggested)\b|\b(?:last|previous) (?:answer|comment|message|response)s?\b|\bfurther up\b/i,
];

/** Says whether the object of a sentence was named before it. */
export function objectPointsBack(sentence: string): boolean {
  return OBJECT_BACK.some((one) => one.test(sentence));
}

/** Like pointsBack(), for a sentence of a user or a title. */
export function requestPointsBack(sentence: string): boolean {
  return REQUEST_POINTS_BACK.test(sentence) || pointsBack(sentence);
}

const ENDS_AS_QUESTION = /[?？]["'”’)\]]*$/u;

/**
 * Returns the line from its first informative sentence to its last one; '' if it has none. A question at its end would
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

/** Matches an order that is a lasting rule, unlike a task: "Use tabs", "Run the linter first". */
const RULE = /^(?:use|run|see|set|fix:(?! consider\b))(?!\p{L})/iu;
/** Matches a verb that shows a statement: "Test coverage of the quay is low" is no order. */
const HAS_VERB = /\b(?:is|are|was|were|has|have|had|needs?|must)\b/i;
/** Matches an action whose subject is named above the list: "Verifies the message". */
const NAMELESS =
  /^(?:(?:also|always|never|only|correctly) )?(?:adds|allows|applies|asserts?|catches|clears|combines|compares|computes|contains|converts|creates|deletes|detects|displays|ensures|extracts|fails|fetches|finds|gets|handles|includes|keeps|loads|merges|parses|prevents|provides|reads|reduces|removes|replaces|requires|resolves|returns|saves|sends|shows|skips|supports|triggers|uses|validates|verif(?:y|ies)|wraps|writes)\b(?! (?:is|are|was|were|pass|fail)\b)/i;
/** Matches references to text around the line: "The most likely are #1 and #2", "Option 1 is longer", "see above". */
const NAMES_ABSENT =
  /^option [A-D\d]\b(?!:)|^the P\d (?:issues|items)\b|(?:^|\s)#\d (?:and|or|&) #\d|^(?:this|that|these|those|the (?:following|above)) (?!(?:branch|repo|repository|project|package|codebase|service)\b)\p{L}|\b(?:(?:see|as|mentioned|listed|described) (?:above|below)|the (?:above|following))\b|^(?:dies|jene)[ers]{0,2} \p{L}|^(?:cette?|ces) \p{L}|^est[aeo]s? \p{L}/iu;
/** Matches an actor of an example, "Session B tries to start". One line cannot explain who it is. */
const IN_EXAMPLE =
  /\b(?:[Aa]gent|[Bb]ranch|[Cc]lient|[Cc]ommit|[Pp]rocess|[Pp]rompt|[Ss]ession|[Tt]hread|[Uu]ser|[Ww]orker) (?:[A-D]|[1-4])\b/g;

/** Says whether a sentence is a step of an example: it names exactly one actor, such as "Session B". */
export function isStepOfExample(sentence: string): boolean {
  return new Set(sentence.match(IN_EXAMPLE)).size === 1;
}

/** Matches a place in the code without a statement about it. */
const POINTS_TO_CODE =
  /^`[\w./-]+\.\w{1,4}(?::[^`]*)?`:? (?:[–—-] )?(?:used|called|defined|during|in|at|where|when|for)\b/i;
/** Matches a line about a single test, "`TestQuay` - verifies the lock". The file of the test says the same. */
const NAMES_TEST =
  /^`?(?:Test[A-Z]\w+|[\w./-]*(?:_test\.\w{1,4}|\.(?:spec|test)\.\w{1,4}))(?::\d+)?`?\s*(?:[–—:-]\s|\()/u;
/** Matches a count of written lines, which the file shows too. */
const COUNTS_LINES = /\(~?\d+ (?:LOC|lines)\b/i;

/** Says whether a line of an agent is a task, or needs the lines around it. */
export function isWeak(line: string): boolean {
  return (
    (kindOf(line) === 'order' && !RULE.test(line) && !HAS_VERB.test(line)) ||
    NAMELESS.test(line) ||
    NAMES_ABSENT.test(line) ||
    isStepOfExample(line) ||
    POINTS_TO_CODE.test(line) ||
    NAMES_TEST.test(line) ||
    COUNTS_LINES.test(line)
  );
}

/**
 * Patterns of a list's line without a subject, which the heading of the list names: "Already expects a name", "Can find
 * files by time", "Fall back to the copy", "Used by both gates". Also of a line that names a line of code but no file:
 * "Line 51: opens the gate".
 */
const SUBJECT_ABOVE = [
  /^(?:(?:already|also|always|can|does not|doesn['’]t|never|now|only|still|then) )?(?:abstracts|accepts|assumes|depends|determines|expects|falls back|feeds into|find|gives|ignores|initiali[sz]es|invokes|iterates|looks up|performs|preserves|prints|respects|reuses|scans|sees|splits|tells|throws|traverses|tries|truncates|trusts|works (?:after|because|by|for|on|only|when|with|without))\b(?! (?:is|are|was|were)\b)/i,
  /^(?:does not|doesn['’]t|can) (?:\p{Ll}+ )?\p{Ll}+ /iu,
  /^(?:collect|compute|derive|display|execute|fall back|iterate|propagate|return|reuse|scope|walk) (?=(?:all|an?|any|each|from|only|over|the|through|to|\p{Lu}\p{Ll}+ \d+)\b|[`"'\d])/iu,
  /^(?:(?:already|also|always|currently|just|never|now|only) )?(?!based\b|compared\b|fixed by\b|need\b|tried\b)(?:\p{L}\p{Ll}+ed|built|caught|held|kept|made|read|sent|shown|thrown|written) (?:across|after|as|at|before|by|for|from|in|inside|into|on|per|to|when|with|\d+\+? times)\b[^:]*$/iu,
  /^lines? ~?\d+(?:[–-]\d+)?(?:\s?[:(–—-])|^(?:the|it|this)\b[^`/]*\b(?:is|fails|failed|lies) (?:at|in|on) lines? \d+\b(?! (?:in|of)\b)/i,
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

/** Matches lines that state nothing: a client's menu, a log line, a commit, a quotation, the state of a task. */
export const NO_STATEMENT =
  /^`?\/[a-z][\w:-]*(?: [^`]*)?`?\s*(?:[—–-]|$)|^`\/[a-z][\w:-]*(?: [^`]*)?` first\b|^[Cc]ommit:? `?[\da-f]{7,40}\b|^(?:DEBUG|INFO|WARN(?:ING)?|ERROR|TRACE|FATAL)\b[: ]|^["“«][^"”»]*["”»][.!?]?$|^(?:\.\.\.|…)/;

const MARK_OF_LIST = /^(?:(?:\p{Extended_Pictographic}|[✓✔✗✘☐]|\u{FE0F}|\u{200D})\s*)+/u;

/** Removes the signs with which an agent ticks off a list. */
export function withoutTicks(line: string): string {
  // Unicode counts digits among the emojis, but a number at the beginning of a line belongs to the text.
  return /^[\d#*©®]/.test(line) ? line : line.replace(MARK_OF_LIST, '');
}
