/**
 * Finds the standing rules and corrections in a user's text: "from now on end function names with _c", "no, we use
 * pnpm here", "never touch generated files". A rule is the user's own sentence, word for word. It holds in later
 * sessions until a later sentence replaces or withdraws it.
 * An English sentence counts as a rule mainly if it demands something (an order, "I want you to", "we use … here",
 * "names must …") and if the demand is permanent: it has words like "always", or is about all things of one kind. A
 * sentence about the user's own product ("the API must return 404") counts as a task.
 */

/** The index term of the first passage of a text in which a user states or withdraws a rule; termsOf() never has it. */
export const RULE_TERM = 'rule__said';

/** Longest sentence that can be a rule, in characters; longer ones mostly report events. */
const SENTENCE_CHARS_MAX = 280;
/** Longest message that is searched, in characters: a longer one mostly holds a pasted document. */
const MESSAGE_CHARS_MAX = 16_000;
/** Most rules that svc takes from a message, the first ones: one with more mostly quotes a style guide from a file. */
const RULES_PER_MESSAGE_MAX = 16;
/** Number of sentences, from an announcement on ("now to our coding practices"), that need fewer signs of a rule. */
const ANNOUNCED_SENTENCES = 8;

// Nouns for parts of code and of the work on it. A demand about all things of such a kind is about how to work.
const THING =
  'annotations?|arguments?|assert(?:ion)?s?|attributes?|branch(?:es)?|class(?:es)?|code|comments?|commits?|components?|' +
  'constants?|decorators?|dependenc(?:y|ies)|docs|docstrings?|documentation|enums?|exceptions?|exports?|fields?|files?|' +
  'folders?|functions?|generated|hints?|identifiers?|imports?|indentation|interfaces?|lines?|literals?|logs?|messages?|methods?|migrations?|' +
  'mocks?|modules?|names?|packages?|parameters?|params|prs?|pull requests?|quotes?|scripts?|snapshots?|statements?|' +
  'strings?|tests?|todos?|types?|variables?|vars?|words?';

// Verbs of the agent's work.
const WORK =
  'abbreviate|add|amend|annotate|answer|apply|ask|assume|avoid|begin|branch|build|bump|call|capitali[sz]e|change|check|cite|' +
  'comment|commit|communicate|confirm|create|declare|define|delete|deploy|disable|document|edit|employ|end|ensure|' +
  'explain|export|finish|follow|force[- ]push|format|generate|guess|handle|have|implement|import|include|incorporate|' +
  'indent|initiali[sz]e|install|introduce|keep|limit|lint|log|make|mention|merge|mock|modify|name|omit|overwrite|place|' +
  'prefer|prefix|print|push|put|rebase|refactor|reformat|regenerate|rely|remove|rename|reply|respond|return|rewrite|run|set|show|skip|sort|' +
  'speak|split|squash|start|stick|suffix|summari[sz]e|switch|tag|test|touch|translate|try|type|use|utili[sz]e|validate|' +
  'verify|wait|wrap|write';

/** Verbs of naming and writing. An order with one of these for all things of a kind is a convention. */
const CONVENTION_WORK =
  'annotate|begin|capitali[sz]e|document|end|include|incorporate|indent|name|prefix|start|suffix|type|use|wrap|write';

/** Matches the scope of a rule about everything that the agent makes: "in everything you write". */
export const WHATEVER_YOU_MAKE =
  '(?:everything|anything|whatever) (?:that )?you (?:create|do|make|produce|say|write)';

const FOR_GOOD =
  'from now on|from here on(?: out)?|from this (?:point|moment|day)(?: on| forward)?|going forward|moving forward|henceforth|in (?:the )?future|' +
  `until i say otherwise|in ${WHATEVER_YOU_MAKE}|as a rule|at all times|without exception|no exceptions|every (?:single )?time|each time|whenever|any ?more|no longer`;

// Matches the opening of a sentence, before the demand itself: "OK, from now on", "in this project,", "when you write
// tests,". It may say when the demand holds, but not what is demanded.
const OPENING = new RegExp(
  '^(?:(?:and i mean always|ok(?:ay)?|great|good|excellent|perfect|now|so|and|but|also|then|no|yes|hey|well|first(?:ly)?|second(?:ly)?|' +
    `third(?:ly)?|${FOR_GOOD}|similarly|likewise|in addition|on top of that|as you know|always(?=, and i mean)|even if [^,;]{1,80}|finally|[^:.!?,;]{1,80}(?=:\\s)|` +
    'lastly|last|next|additionally|furthermore|moreover|again|oh|actually|important|note|remember|' +
    "please|as i(?:'ve)? said(?: \\w+){0,2}(?=,)|like i said|i(?:'ve| have)? (?:already )?(?:told|asked) you(?: \\w+){0,3}(?=[,:])|" +
    'just|one more thing|another thing|for (?:this|our|the|all) [\\w ]{1,30}|in (?:this|our|the|all|your) [\\w ]{1,30}?(?=[,:;]| (?:always|never|please|we|use)\\b)|' +
    '(?:when|while|before|after|whenever|if|with|as for|regarding|concerning|for|in|within|on) [^,.;:!?]{1,80})\\s*(?:[,:;–—-]+|(?=\\s(?:always|never|please|we|use)\\b)|(?<=\\b(?:now|now on|forward|so|and|but|also|then|again|please|just|remember|important|note|no|yes))(?=\\s))\\s*)+',
  'i',
);

/** Matches words that make a demand permanent. */
const STRONG = new RegExp(
  `\\b(?:always|never|${FOR_GOOD})\\b|\\bonly ever\\b|\\bnot ever\\b|\\bdon'?t ever\\b|, ever[.!]*$`,
  'i',
);
/** Matches a remark that the user has asked for the same before. */
const TOLD =
  /\b(?:i(?:'ve| have)? (?:already )?(?:told|asked) you|how many times|how often (?:did|do|must) i|as i(?:'ve)? said|like i said|again and again)\b/i;
/** Matches "remember to", or a demand about each thing of a kind that is yet to be written. */
const LASTING = new RegExp(
  `\\b(?:remember to|don't forget to|(?:every|each|any) (?:[\\w-]+ )?(?:${THING}) (?:that )?you(?:'ll)? (?:write|create|make|add|define)|in your future)\\b`,
  'i',
);
/** Matches "All docs should be updated", "all files should be there now": each is about a single task. */
const IS_TASK = /\bshould be (?:\w+ly )?\w+ed\b|\b(?:again|now)[.!]*$/i;
/** Matches the beginning of a question or a proposal. */
const ASKS =
  /^(?:can|could|should|shall|how|what|why|where|when|do|does|did|is|are|have|has|maybe|perhaps|if) /i;
const NAMING = /\b(?:names?|naming|prefix|suffix|decorators?)\b/i;
const ASKS_FOR_GOOD =
  /^(?:can|could|would|will) you (?:please )?(?:always|never|from now on|in future|stop)\b/i;
/** Matches a remark that a custom belongs to this project. */
const HERE =
  /\b(?:here|in (?:this|our) (?:repo|repository|project|codebase|code ?base|team|company|monorepo|workspace))\b/i;
/** Matches a reference to every thing of a kind: "all new files", "your tests". */
const ALL_OF = new RegExp(
  `\\b(?:all|every|each|any|no)\\s+(?:of\\s+)?(?:(?:your|our|the|my|new|public|single|python|type)\\s+)*(?:[\\w-]+\\s+){0,2}(?:${THING})\\b` +
    `|\\byour\\s+(?:[\\w-]+\\s+){0,3}(?:${THING})\\b`,
  'i',
);
/** Matches a text that ALL_OF may match. It is a quick test, because V8 needs 10 ms to compile ALL_OF. */
const ALL_WORD = /\b(?:all|every|each|any|no|your)\b/i;
/** Matches a kind of things, mostly in the plural, at the beginning or soon after a preposition: "in functions". */
const KIND = new RegExp(
  `(?:^|\\b(?:in|to|for|of|with|on|from|use|using|include|including|add|adding|end|ending|start|starting|begin|prefix|suffix|name|naming|write|writing|touch|edit|import|importing|commit|declaring|defining|and|or|no))\\s+` +
    `(?:[\\w-]+\\s+){0,2}(?:names|functions|methods|classes|variables|attributes|arguments|parameters|comments|docstrings|annotations|hints|tests|commits|files|imports|exports|types|statements|assertions|asserts|decorators|modules|strings|messages|branches|dependencies|code|exceptions|constants|packages|scripts|mocks|prs|pull requests|todos)\\b`,
  'i',
);
/** Matches an announcement that rules follow. */
const ANNOUNCES =
  /\b(?:(?:coding|naming|code|team|style|development|programming|engineering|git|commit|testing|formatting)[\w -]{0,24}(?:convention|guideline|standard|practice|rule|style|polic|habit|preference|instruction|requirement|expectation)\w*|(?:convention|guideline|best practice|house rule)s?\b|naming|(?:few|some|couple of|two|three|specific|following|new|updated?|additional|another|important)(?: more)? (?:\w+ )?(?:rule|practice|standard|instruction|change|requirement|thing|update|point|aspect)s?)/i;

const IMPORTANT =
  "\\bit(?:'s| is) (?:\\w+ )?(?:important|essential|crucial|mandatory|required|necessary|vital|imperative)\\b";

/** Matches orders and wishes. */
const DEMAND = new RegExp(
  `^(?:please )?(?:(?:always|never|do not|don'?t|dont|only|continue(?: to)?)\\s+(?:ever\\s+|forget to\\s+)?)?(?:${WORK})\\b` +
    "|^(?:please )?(?:always,? (?:and i mean always,? )?|never |continue )?(?:stop|avoid|remember|ensure|make sure|be sure (?:to|that|you)|don'?t forget|try to|get into the habit)\\b" +
    "|\\b(?:i|we|i'd|we'd|they)(?:'d|'ll| would| do| also| will| really| just)* (?:want|need|like|expect|ask|prefer|require|encourage|urge|insist|recommend|suggest|appreciate)\\b" +
    "|\\byou(?:'ll| will| should| must| need to| have to| are to| shall| can(?:'t|not)| may not| ought to|'re to)\\b" +
    "|\\b(?:let's|let us) (?:always|never|only|not ever|from now on)\\b" +
    '|\\b(?:emphasi[sz]e|stress|highlight|reiterate) the (?:importance|use|need|value)\\b|\\bplace (?:an? )?(?:\\w+ )?emphasis on (?:\\w+ing|the use of)\\b' +
    `|${IMPORTANT}`,
  'i',
);
const EMPHASISED = new RegExp(
  `\\b(?:(?:emphasi[sz]e|stress|highlight|reiterate) the (?:importance|use|need|value) of|place (?:an? )?(?:\\w+ )?emphasis on (?:\\w+ing|the use of))\\b|${IMPORTANT}`,
  'i',
);
/** Matches a wish about the agent or the whole team: "I want you to …". */
const YOU_TO =
  /\b(?:i|we|i'd|we'd)(?:'d|'ll| would| do| also| will| really| just| still)* (?:want|need|like|expect|ask|prefer|require) (?:you|us|everyone|everybody|all of you|our team|the team)\b/i;
/** Matches the description of a custom: "we use …". */
const OUR_WAY =
  /\bwe(?:'re| are|'ll| will)? (?:(?:always|never|only|don'?t|do not|now|all|also|strictly|should|going to|consistently) )*(?:prefer(?:ring)?|requiring|calling|using|ending|starting|use|including|adding|standardizing|standardising|include|add|maintain|write|run|follow|adhere|prefer|require|expect|commit|name|start|end|avoid|put|keep|switched to|moved to|agreed|decided|insist)\b/i;
/** Matches "One of our conventions is to …", "another practice is the use of …". */
const PRACTICE_IS =
  /^(?:(?:one|two|three|another|other|some|the|our|my|a|an|key|important|essential|crucial|specific|new|general|of|first|second|next|last|thing|things|coding|naming|style|team|more)\s+)*(?:convention|practice|rule|standard|guideline|policy|preference|requirement|habit|aspect|point|instruction|thing|conventions|practices|rules|standards|guidelines|requirements|things (?:that )?(?:i|we) (?:expect|insist on|require|value))\b[^.:;]{0,60}?\b(?:is|are)\s+(?:that|to|(?:the )?(?:\w+ )?(?:use|inclusion|addition|importance) of|about|regarding|using|adding|including|always|never|add|use|put|start|end)\b/i;
/** Matches a phrase that mostly announces rules and states none: "follow these conventions". */
const ONLY_ANNOUNCES =
  /\b(?:follow|focus on|adopt(?:ing)?|implement(?:ing)?|incorporat(?:e|ing)|give|share|apply|adhere to|discuss|talk (?:to you )?about|touch (?:base )?(?:with you )?on|update (?:you )?on|use|using|emphasi[sz]e|reinforce|keep|remember|pay attention to|go over|mention|review|introduce)\b(?: (?:the|our|a|an|some|these|those|this|your|you|importance|of|in|mind|few|couple|two|three|four|specific|particular|certain|new|important|key|consistent|on|with|following|general|updated?|additional|coding|naming|style|code|best|team|small|simple|company|standard|programming))* (?:conventions?|guidelines?|practices?|rules?|standards?|instructions?|changes?|updates?|things|points|requirements?|aspects?|polic(?:y|ies)|style)\b/i;
/** Matches a sentence that refers to another one: "apply them from now on". */
const REFERS_BACK =
  /^(?:please )?(?:(?:make sure|be sure|remember|ensure|always|never|you|to|start|keep|that) )*(?:\w+)(?:ing)? (?:this|these|them|it|that|those|so)(?: (?:again|consistently|across|in|to|going|moving|from|for|when|rules?|conventions?|practices?|guidelines?|standards?|changes?|updates?|instructions?|naming|coding)\b.*)?[.!]*$|\bnever (?:do|repeat) (?:this|that|it)(?: ever)? again\b|\b(?:this|that|it) (?:never|doesn't|does not) (?:ever )?happens? again\b/i;
/** Matches a quoted text, an affix or a decorator: the exact value that a rule demands. */
const VALUE = /['"`‘“][^'"`’”]{1,60}['"`’”]|\b\w+_\b|\b_\w+|@\w+/;
/** Matches "Function names must …". */
const THINGS_MUST = new RegExp(
  `^(?:(?:all|every|each|any|our|your|new|public) )*(?:[\\w-]+ ){0,3}(?:${THING})\\b[^.;]{0,60}?\\b(?:must|should|shall|need to|needs to|have to|has to|ought to|are to|may not|can(?:'t|not))\\b`,
  'i',
);
/** Matches words of which each text that THINGS_MUST matches has one; it is a quick test before THINGS_MUST. */
const MUST =
  /\b(?:must|should|shall|needs? to|ha(?:ve|s) to|ought to|are to|may not|can(?:'t|not))\b/i;
/** Matches "We use one thing instead of another." */
const NOT_BUT = /\bwe\b[^.]{0,60}?\b(?:not|instead of|rather than)\b/i;
/** Matches a sentence about the user's own product instead of the agent's work. */
const PRODUCT = new RegExp(
  '\\b(?:if|when|whenever|once|where|every time|each time|until)\\s+(?!it comes to)(?:a|an|the|our|its|any|someone|somebody)?\\s*(?:[\\w-]+ )?(?:users?|customers?|visitors?|clients?|players?|admins?|members?|someone|somebody|apps?|applications?|pages?|buttons?|forms?|modals?|servers?|api|endpoints?|requests?|responses?|tokens?|sessions?|browsers?|service|session|it)\\b' +
    "|^(?!it(?:'s| is) (?:\\w+ )?(?:important|essential|crucial|mandatory|required|necessary|vital|imperative) (?:that (?:you|we|all|every)|to)\\b)(?:the|our|a|an|this|that|it|its|there|these|those|they|which|he|she)\\b(?!\\s+(?:rule|convention|standard|policy|key|other|next|first|second|third|last|important|team))[^,]{0,80}?\\b(?:must|should|shall|always|never|will|has to|have to|needs?)\\b" +
    '|\\b(?:to|for|by|lets?|so|that) (?:the|our|an?) (?:users?|customers?|visitors?|admins?)\\b',
  'i',
);
/** Matches a report of what somebody does or did. */
const ABOUT_SELF =
  /^(?!it's|it is)(?:i|i've|i'm|we've|we had|he|she|they|it)\b(?!(?:'d|'ll| would| do| also| will| really| just| can| must)* (?:want|need|like|expect|ask|prefer|require|encourage|urge|insist|recommend|suggest|told|already|have told|asked)| (?:migrated|moved|switched) (?:from|to)|(?:'d| would)? rather| (?:really )?(?:don't|do not|dislike|hate))|^(?:each|every) time (?:i|we) [^.]{1,60}? you (?!(?:are to|can|have to|must|need to|shall|should|will)\b)/i;
/** Matches what somebody will see of the product: "you should see the list". */
const YOU_SEE =
  /\byou(?:'ll| will| should| must| can)? (?:always |never )?(?:see|get|receive|notice|find|hear|be able)\b/i;
/** Matches an order to end a habit. */
const HABIT =
  /^(?:please )?(?:stop|quit|no more) (?:adding|apologi[sz]ing|asking|assuming|committing|creating|explaining|guessing|importing|leaving|making|mocking|putting|reformatting|repeating|saying|skipping|suggesting|touching|using|wrapping|writing)\b/i;
/** Matches "We don't mock the database", "no more inline styles". Together with HERE it is a rule. */
const NEVER_OURS =
  /\bwe (?:never|don'?t|do not) (?!care|get|had|have|knew|know|need|see|support|think|want)\w+|^no more \w+/i;
/** Matches "Never force unwrap an optional". Together with HERE it is an order, also with a verb that WORK lacks. */
const NEVER_DO =
  /^(?:please )?(?:never|always) (?!(?:again|been|came|did|ever|found|gave|got|had|heard|knew|made|mind|ran|said|saw|seen|the|thought|told|took|was|went|were)\b)[a-z]+(?<!ed|ing|s) /i;
/** Matches a demand for something that comes with each new thing: "every function needs a test". */
const COMES_WITH = new RegExp(
  '^(?:every|each|all) [^.;,]{1,40}\\b(?:must|should|needs? to|has to|have to|needs?|gets?) (?:(?:have|come with|get) )?(?:an? |its own |their own )?' +
    '(?:\\w+[ -]){0,2}(?:tests?|story|stories|docstrings?|documentation|changelog entry|type hints?|down step|licen[cs]e header)\\b',
  'i',
);
/** Matches the beginning of each text that COMES_WITH matches; it is a quick test before COMES_WITH. */
const FOR_EACH = /^(?:every|each|all) /i;
/** Matches "Tabs, not spaces": a custom without a verb. */
const NOT_BUT_HERE = /^(?:(?:no|nope|nah)[,.: ]+)?[\w@.+-]+(?: \w+)?,? not [\w@.+-]+\b/i;
/** THING and further nouns for parts of code: what a taste or a ban is about. */
const CODE_THING = `${THING}|abbreviations?|any|calls?|callbacks?|casts?|emojis?|globals?|hacks?|ifs?|lambdas?|loops?|macros?|mutations?|numbers|one-liners?|prints?|pushes|returns?|semicolons?|singletons?|styles?|ternar(?:y|ies)`;
/**
 * Matches the beginning of a preference: "I prefer", "I'd really rather use". A word like "the", "it" or "option", or a
 * number, must not follow, because the sentence then chooses one design and states no permanent preference.
 */
const TASTE =
  "^i(?:'d| would| do)?(?: (?:always|generally|much|really|strongly|usually))* (?:prefer|rather (?:have|see|use)|don't (?:like|want)|do not (?:like|want)|dislike|hate) " +
  '(?!(?:an?|another|how|it|its|my|one|option|our|that|the|these|this|those|to|what|when|your)\\b|\\d)';
/** Matches a text that PREFERS may match. It is a quick test, because V8 needs 25 ms to compile PREFERS. */
const BEGINS_TASTE = new RegExp(TASTE, 'i');
/** Matches a preference about a kind of code, not about one piece of it: "I prefer early returns over nested ifs". */
const PREFERS = new RegExp(`${TASTE}[\\w-]+(?: [\\w-]+){0,3}? ?\\b(?:${CODE_THING})\\b`, 'i');
/** Matches a ban: "no inline styles", "no network calls in unit tests". */
const BANS = new RegExp(
  `^no (?!exceptions?\\b)(?:more )?(?:[\\w.-]+ ){0,2}(?:${CODE_THING}|console\\.log)\\b`,
  'i',
);
/** Matches a sentence that is called a rule: "House rule: …". */
const IS_LABELLED =
  /^(?:(?:a|another|general|golden|hard|house|my|new|one|our|simple|team|the) )*(?:convention|guideline|policy|rule)s?: /i;
/**
 * Matches an order that needs the user's consent each time: "don't commit unless I ask", "ask before you delete
 * anything".
 */
const CONSENT = new RegExp(
  `^(?:please )?(?:don'?t|do not|only) \\w+\\b[^.;]*\\b(?:unless|when|if) i(?:'ve| have)? (?:agree|approve|ask|confirm|say|tell|told)` +
    `|^(?:please )?(?:ask|check with|confirm with)(?: me)?(?: first)?,? before (?:you \\w+|\\w+ing)\\b(?!.*\\b(?:it|that|these|this|those)\\b)`,
  'i',
);
const OCCASION =
  '(?:before|after|with) (?:every|each|any) (?:single )?(?:change|commit|edit|feature|fix|merge|pr|pull request|push|refactoring|release|task)';
/** Matches an order to run, check or commit something. With ON_OCCASION it is a rule: "lint before every commit". */
const EACH_TIME = new RegExp(
  `^(?:${OCCASION},? )?(?:please )?(?:ask|build|check|commit|format|lint|pull|push|rebase|regenerate|run|show|summari[sz]e|test|update|verify|write)\\b`,
  'i',
);
const ON_OCCASION = new RegExp(`\\b${OCCASION}\\b`, 'i');
/** Matches a custom that is told by its contrast: "tests live next to the source, not in a folder". */
const THINGS_NOT = new RegExp(
  `^(?:[\\w-]+ ){0,2}(?:${CODE_THING}|fixtures?) (?!are|is|was|were)[a-z]+ [^.;]*, not\\b`,
  'i',
);
/** Matches "Function names are snake_case". */
const NAMES_ARE = /^(?:[\w-]+ ){0,2}names are (?:\w+[-_ ]?case|upper|lower|plural|singular)/i;
/** Matches "all new components are function components". */
const ALL_ARE = new RegExp(
  `^(?:all|every|each) (?:[\\w-]+ ){0,2}(?:${THING}) (?:are|is|live|go|use|have)\\b`,
  'i',
);
/** Matches "migrations are never edited". */
const ARE_NEVER = new RegExp(
  `^(?:[\\w-]+ ){0,2}(?:${THING}) (?:are|get) (?:always|never|only)\\b`,
  'i',
);
/** Matches "we moved to biome, so no more prettier". */
const MOVED =
  /\bwe(?:'ve| have)? (?:migrated|moved|switched) (?:from \S+ )?to \S+.*\b(?:no more|stick (?:to|with)|(?:do not|don't|not) \w+ any ?more)\b/i;
/** Matches "use uv instead of pip in this project". "Here" is not enough, because it may mean a place in a file. */
const USE_IN_PROJECT =
  /^(?:please )?(?:prefer|run|use|write)\b.*\b(?:instead of|not|rather than)\b.*\bin (?:this|our) (?:codebase|monorepo|project|repo|repository|workspace)\b/i;
/** Matches the return of a tool that an earlier rule refused: "never mind what I said about jest, do use it again". */
const AGAIN = /\bdo use [\w@.+-]+ again\b/i;
const YOU_MAY_NOT = /^you (?:may|must|shall|should)(?: not|n't) /i;
/** Matches an occasion that the sentence itself names, so that "it" points to nothing outside. */
const NAMES_OCCASION = /^(?:(?:each|every) time|when|whenever) you\b[^,]*,/i;
/** Matches a sentence that calls something a convention: "our convention is kebab-case for file names". */
const CONVENTION_IS =
  /^(?:our|my|the) (?:[\w-]+ )?(?:convention|policy|rule|standard|style)(?: here)? is \w/i;

/** Matches an order for one task. The part after a comma describes its result, even if it sounds permanent. */
const STRONG_IN_A_TASK = new RegExp(
  "^(?:(?:ok(?:ay)?|now|so|and|then|also|please|let's|can you|could you)[, ]+)*" +
    '(?:add|change|convert|create|delete|extract|fix|implement|keep|make|merge|move|refactor|remove|rename|replace|revert|rewrite|split|turn|update)\\b' +
    '(?:(?!\\b(?:always|never|from now on|every|whenever)\\b)[^.;]){12,}?(?:,| and| but)\\s(?:[^.;]*\\s)?(?:always|never|any ?more|no longer)\\b',
  'i',
);
/** Matches a phrase that limits a demand to this task. */
const ONE_OFF =
  /\b(?:for now|for the moment|this time|just once|right now|in this (?:pr|commit|branch|change|case|one)|yet|today|for this (?:one|pr|task|change)|last time|next time)\b/i;
const PAST = /\b(?:was|were|did|had|didn'?t|wasn'?t|have been|has been)\b/i;

/** Matches repeated events in other languages, such as "it always fails": these are no rules. */
const IS_EVENT =
  /\b(?:siempre|nunca|sempre|mai|jamais|toujours) (?:me |se |si |le |la |lo )?(?:falla|fallan|tarda|da|devuelve|pasa|funciona|aparece|sale|está|es|hay|falha|demora|acontece|fallisce|va|succede|visto|la même|le même|pareil)\b|\b(?:immer (?:noch|wieder|das|der|die|dasselbe|dieselbe|wenn|nur)|nie (?:gesehen|gehört|wieder gesehen))\b|(?:失败|报错|出错|崩溃|返回|显示)|(?:失敗|エラー|落ち|返(?:す|る|って|り)|表示)|(?:실패|오류|에러|반환)/iu;

/** Rules in other languages: words that make a demand permanent, with the demand's verb if needed. */
const OTHER_LANGUAGES = [
  // German
  /(?:^|[,;:]\s*)(?:bitte |und |also |nein,? )*(?:ab jetzt|ab sofort|von nun an|künftig|in zukunft|immer|niemals|nie)\b|\b(?:verwende|benutze|nutze|schreib\w*|mach\w*|antworte|committe|teste|nimm|fass\w*)\b[^.]{0,60}\b(?:immer|nie|niemals|nie wieder|nicht mehr|stets)\b|\bwir (?:verwenden|benutzen|nutzen|nehmen|schreiben)\b[^.]{0,60}\b(?:hier|immer|nie|nicht)\b|^hör(?:t|en sie)? (?:bitte )?auf\b|^(?:bitte )?keine?n? [^.]{1,60}\b(?:mehr|im code|hier|in diesem (?:projekt|repo))\b/iu,
  // French
  /(?:à partir de maintenant|désormais|dorénavant|à l[’']avenir)|(?:^|[,;:]\s*)(?:s[’']il (?:te|vous) pla[iî]t,? )?(?:toujours\b|ne\s+\w+\s+jamais\b|n[’']\w+\s+jamais\b|\w+ez?\s+toujours\b)|\b(?:ici|dans ce (?:projet|dépôt)),? (?:on|nous) (?:utilis|écri)\w+/iu,
  // Spanish
  /(?:de ahora en adelante|a partir de ahora|en adelante|en el futuro)|(?:^|[,;:]\s*)(?:por favor,? )?(?:siempre|nunca|jamás|no \w+ (?:nunca|jamás))\b|\b(?:usa|utiliza|escribe|añade|ejecuta|responde)\b[^.]{0,60}\b(?:siempre|nunca)\b|\baquí (?:usamos|utilizamos)\b/iu,
  // Portuguese
  /(?:a partir de agora|de agora em diante|daqui para a frente|daqui pra frente)|(?:^|[,;:]\s*)(?:por favor,? )?(?:sempre|nunca|jamais)\b|\b(?:use|usa|escreva|adicione|execute|responda)\b[^.]{0,60}\b(?:sempre|nunca)\b|\baqui (?:usamos|utilizamos)\b/iu,
  // Italian
  /(?:d[’']ora in poi|da ora in poi|d[’']ora in avanti|in futuro)|(?:^|[,;:]\s*)(?:per favore,? )?(?:sempre|mai|non \w+ mai)\b|\b(?:usa|scrivi|aggiungi|esegui|rispondi)\b[^.]{0,60}\b(?:sempre|mai)\b|\bqui usiamo\b/iu,
  // Russian
  /(?:отныне|впредь|с этого момента|в дальнейшем)|(?:^|[,;:]\s*)(?:пожалуйста,? )?(?:всегда|никогда не|больше (?:никогда )?не) [а-яё]+(?:йте|й|ите|и|ьте|ь)(?![а-яё])|(?:здесь|у нас|в этом проекте) (?:мы )?(?:используем|пишем)/iu,
  // Chinese
  /(?:从现在开始|从现在起|今后|以后(?:都|请|不要|必须|一律)|始终|总是要|一律|永远不要|绝不要|绝对不要|不要再|每次都|请始终|务必)|(?:这里|本项目|这个项目)[^。]{0,4}(?:用|使用)[^。]*(?:不用|不要|不是|别用)/u,
  // Japanese
  /(?:今後は?|これから(?:は|ずっと)|常に|必ず|絶対に|二度と)/u,
  // Korean
  /(?:앞으로(?:는)?|항상|절대(?:로)?|반드시|언제나)/u,
];

/**
 * Lists the first RULES_PER_MESSAGE_MAX rules that a user states in a text, word for word, in text order. Empty for a
 * text longer than MESSAGE_CHARS_MAX.
 */
export function rulesIn(text: string): string[] {
  if (text.length > MESSAGE_CHARS_MAX) return [];
  const found: string[] = [];
  let announced = 0;
  let before = '';
  for (const sentence of sentencesOf(text)) {
    const antecedent = before;
    before = sentence;
    announced = ANNOUNCES.test(sentence) ? ANNOUNCED_SENTENCES : announced - 1;
    const whole = withAntecedent(antecedent, sentence);
    if (whole !== sentence ? !isRuleOf(sentence) : !isRule(sentence, announced > 0)) continue;
    found.push(whole);
    if (found.length === RULES_PER_MESSAGE_MAX) break;
  }
  return found;
}

/**
 * Joins a sentence with the one before it if the rule needs both: "I want you to use a convention for variable
 * names. Start them with 'v_'." Otherwise returns the sentence as it is.
 */
function withAntecedent(before: string, sentence: string): string {
  const isOpen =
    VALUE.test(withoutApostrophes(sentence)) &&
    !ANY_THING.test(sentence.replace(/\b(?:those|these) names?\b/gi, ''));
  const isNamed =
    ANY_THING.test(before) &&
    (ONLY_ANNOUNCES.test(before) ||
      /^(?:as for|for|when it comes to|the same goes)\b/i.test(before));
  return isOpen && isNamed && before.length + sentence.length < SENTENCE_CHARS_MAX
    ? `${before} ${sentence}`
    : sentence;
}

const ANY_THING = new RegExp(`\\b(?:${THING})\\b`, 'i');

/** Says whether a sentence that needs the one before it demands something, or has words like "always". */
function isRuleOf(sentence: string): boolean {
  const said = sentence.replace(OPENING, '');
  return DEMAND.test(said) || STRONG.test(sentence);
}

function withoutApostrophes(text: string): string {
  return text.replaceAll(/(?<=\w)['’](?=\w)/g, '');
}

export function saysRules(text: string): boolean {
  return rulesIn(text).length > 0 || withdrawalsIn(text).length > 0;
}

/** Lists the sentences that withdraw a rule: "forget the rule about docstrings", "no need to run the tests". */
export function withdrawalsIn(text: string): string[] {
  return text.length > MESSAGE_CHARS_MAX
    ? []
    : sentencesOf(text).filter(
        (sentence) => sentence.length <= SENTENCE_CHARS_MAX && WITHDRAWS.test(sentence),
      );
}

const WITHDRAWS =
  /\b(?:(?:forget|ignore|drop|disregard|scrap|cancel|lift|never ?mind|remove) (?:about )?(?:the|that|my|our|what i said)\b[^.]{0,40}\b(?:rule|convention|instruction|about|guideline|policy|practice|requirement)\b|(?:no need to|don'?t (?:have|need) to|do not (?:have|need) to|needn'?t|not necessary to|no longer (?:need|have|required?|necessary|want|use))\b[^.]{0,80}(?:any ?more|from now on|going forward)?|you (?:can|may) (?:stop|skip|now|again)\b)/i;

/**
 * Says whether a sentence states a rule. It looks for a demand first: compiling the patterns of the exceptions takes 50
 * ms, and a process that reads a single prompt mostly finds no demand and saves that time.
 */
function isRule(sentence: string, isAnnounced: boolean): boolean {
  if (sentence.length > SENTENCE_CHARS_MAX || sentence.length < 6) return false;
  const plain = withoutAsides(sentence)
    .replace(/^[-*•\d.)"'“\s]+/, '')
    .replaceAll('’', "'");
  if (plain === '' || isPasted(withoutAsides(sentence)) || isStep(plain)) return false;
  const isAsked = /[?？]["')\s]*$/.test(plain);
  if (isAsked && !ASKS_FOR_GOOD.test(plain)) return false;
  if (!isAsked && OTHER_LANGUAGES.some((one) => one.test(plain)) && !IS_EVENT.test(plain))
    return !STRONG_IN_A_TASK.test(plain);
  const said = plain
    .replace(OPENING, '')
    .replace(/^let(?:'s| us) not /i, "don't ")
    .replace(/^(?:to|(?:can|could|would|will) you(?: please)?) (?=\w)/i, '');
  const isHabit = HABIT.test(said) && !ONE_OFF.test(plain);
  return (
    (isHabit || isDemand({ plain, said, isAsked, isAnnounced })) &&
    (isHabit || !isAboutRules(plain, said)) &&
    !isAboutOthers(plain, said) &&
    !STRONG_IN_A_TASK.test(plain)
  );
}

/** Says whether a sentence demands something that is permanent, or that is about all things of one kind. */
function isDemand({ plain, said, isAsked, isAnnounced }: Sentence): boolean {
  if (PRACTICE_IS.test(said)) return isForGoodIn(plain) || VALUE.test(plain) || isGeneral(plain);
  if (!isAsked && FOR_EACH.test(said) && COMES_WITH.test(said)) return true;
  if (!isAsked && !ONE_OFF.test(plain) && isCustom(plain, said)) return true;
  if (!isAsked && HERE.test(plain)) {
    const isOrder = NEVER_DO.test(said);
    if (isOrder || NOT_BUT_HERE.test(plain) || NEVER_OURS.test(said)) {
      return !ONE_OFF.test(plain) && !(isOrder && PAST.test(plain));
    }
  }
  const isOurs = OUR_WAY.test(said) && !ASKS.test(said);
  const isForGood = isForGoodIn(plain) || (isGeneral(plain) && LASTING.test(plain));
  if (isForGood && (isOurs || DEMAND.test(said) || THINGS_MUST.test(said))) return !isEvent(plain);
  if (ONE_OFF.test(plain) || isAsked) return false;
  if (isOurs && (HERE.test(plain) || NOT_BUT.test(plain) || /^no[,.: ]/i.test(plain)))
    return !PAST.test(plain);
  if (isAnnounced && YOU_TO.test(said) && VALUE.test(withoutApostrophes(plain)))
    return !PAST.test(plain);
  const isAvoided = /^(?:please )?avoid /i;
  if (isAvoided.test(said) && KIND.test(said.replace(isAvoided, ' '))) return true;
  if (!isGeneral(plain)) return false;
  if (MUST.test(said) && THINGS_MUST.test(said)) return !PAST.test(plain) && !IS_TASK.test(plain);
  if (isOurs && (isAnnounced || NAMING.test(plain)) && CONVENTION.test(said))
    return !PAST.test(plain);
  if (/^(?:please )?(?:remember|make sure|be sure|ensure)\b/i.test(said) && CONVENTION.test(said))
    return true;
  if (/^(?:please )?(?:do not|don'?t|dont|stop|avoid)\b/i.test(said)) return KIND.test(said);
  if (YOU_MAY_NOT.test(said)) return KIND.test(said);
  const isStressed = isAnnounced || YOU_TO.test(said) || EMPHASISED.test(said);
  if (isStressed && (isOurs || DEMAND.test(said))) return !PAST.test(plain);
  return ORDERS_CONVENTION.test(said) && /\b(?:names?|naming)\b/i.test(plain);
}

/** Says whether a sentence states a custom, a taste or a ban in a form that is permanent by itself. */
function isCustom(plain: string, said: string): boolean {
  const isCalledRule = IS_LABELLED.test(plain) || TOLD.test(plain);
  // The opening of a sentence includes "no", so a ban is looked for before it is removed.
  const ban = plain.replace(/^[^:.!?,;]{1,80}:\s+/, '');
  if (/^no /i.test(ban) && BANS.test(ban))
    return isCalledRule || STRONG.test(plain) || HERE.test(plain);
  if (isCalledRule && (DEMAND.test(said) || ARE_NEVER.test(said))) return true;
  return (
    (BEGINS_TASTE.test(said) && PREFERS.test(said)) ||
    CONSENT.test(said) ||
    (ON_OCCASION.test(plain) && EACH_TIME.test(plain)) ||
    (HERE.test(plain) && (THINGS_NOT.test(said) || NAMES_ARE.test(said))) ||
    (STRONG.test(plain) && ALL_ARE.test(said)) ||
    (CONVENTION_IS.test(plain) && isGeneral(plain)) ||
    MOVED.test(plain) ||
    USE_IN_PROJECT.test(said) ||
    AGAIN.test(plain)
  );
}

interface Sentence {
  /** The sentence without remarks in brackets and list marks. */
  readonly plain: string;
  /** `plain` without its opening and without "can you"; "let's not" is "don't" here. */
  readonly said: string;
  readonly isAsked: boolean;
  /** True if a sentence shortly before announced rules. */
  readonly isAnnounced: boolean;
}

/** Says whether a sentence is about all things of one kind. */
function isGeneral(plain: string): boolean {
  return KIND.test(plain) || (ALL_WORD.test(plain) && ALL_OF.test(plain));
}

/** Says whether a sentence is about the product or its users, or reports what somebody does. */
function isAboutOthers(plain: string, said: string): boolean {
  return PRODUCT.test(said) || PRODUCT.test(plain) || ABOUT_SELF.test(said) || YOU_SEE.test(plain);
}

/** Says whether a sentence only refers to rules that another one states. */
function isAboutRules(plain: string, said: string): boolean {
  const isAnnouncement = ONLY_ANNOUNCES.test(plain) && !VALUE.test(withoutApostrophes(plain));
  return isAnnouncement || (REFERS_BACK.test(said) && !NAMES_OCCASION.test(plain));
}

/** Removes text in brackets: it is a remark and no demand. */
function withoutAsides(sentence: string): string {
  return sentence
    .replaceAll(/\([^()]*\)?/g, ' ')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
}

/**
 * Says whether a sentence was cut from pasted text: it has an unpaired backtick, has an unpaired quotation mark that is
 * not at its beginning or end, or begins with the name of a field ("problem_statement: ").
 */
function isPasted(sentence: string): boolean {
  const isOdd = (mark: string): boolean => sentence.split(mark).length % 2 === 0;
  const isField = /^\w+_\w+: /.test(sentence);
  return isField || isOdd('`') || (isOdd('"') && !/^\W*"|"\W*$/.test(sentence));
}

/** Says whether a sentence is a step of a description: "Then run any DB migration." */
function isStep(plain: string): boolean {
  return /^then\b/i.test(plain) && !STRONG.test(plain);
}

const ORDERS_CONVENTION = new RegExp(
  `^(?:please )?(?:remember to |make sure (?:to|you|that you) |be sure to |ensure (?:that )?you )?(?:${CONVENTION_WORK})\\b`,
  'i',
);

const CONVENTION = new RegExp(
  `\\b(?:${CONVENTION_WORK}|have|has|ends|starts|begins|includes|uses)\\b`,
  'i',
);

/** Says whether a sentence makes its demand permanent in words, or says that the user has asked for the same before. */
function isForGoodIn(plain: string): boolean {
  return STRONG.test(plain) || TOLD.test(plain);
}

/** Says whether a sentence is about the past, and has no "always" or "never" in front of another word. */
function isEvent(plain: string): boolean {
  return PAST.test(plain) && !/\b(?:always|never) (?:be )?\w/i.test(plain);
}

function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?])["')]?\s+(?=\S)|(?<=[。！？])|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '');
}
