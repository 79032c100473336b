import { estimateTextTokens } from '../bytes/tokens.ts';
import { isTelling } from './own-words.ts';
import { rulesIn, WHATEVER_YOU_MAKE, withdrawalsIn } from './rules.ts';
import { termsOf } from './terms.ts';

/**
 * Decides which of the user's rules are in force, and which of those apply to a prompt or an action. A later rule about
 * the same thing replaces an earlier one.
 */

export interface Said {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** A prompt of the user, or what an agent has done after the prompt (see Action in second-look.ts). */
export interface Situation {
  /** The prompt, or the words of the action: commands, paths, names of tools. */
  readonly text: string;
  readonly kind: 'prompt' | 'action';
}

/** Returns the rules in force, newest first. `said`: texts of the user in any order. */
export function rulesInForce<Kind extends Said>(said: readonly Kind[]): Kind[] {
  const later: Facets[] = [];
  const held: Kind[] = [];
  for (const one of said.toSorted((a, b) => b.at - a.at)) {
    const withdrawn = withdrawalsIn(one.text).map(facetsOf);
    // Later sentences of a message override earlier ones.
    for (const text of rulesIn(one.text).toReversed()) {
      const facets = facetsOf(text);
      if (!later.some((other) => replaces(other, facets))) held.push({ ...one, text });
      later.push(facets);
    }
    for (const facets of withdrawn) later.push({ ...facets, isNegative: true });
  }
  return held;
}

/** Returns the rules that apply to the situation, best fit first, of equal fits the shortest, within `tokensMax`. */
export function rulesFor<Kind extends Said>(
  rules: readonly Kind[],
  situation: Situation,
  tokensMax: number,
): Kind[] {
  const fits =
    situation.kind === 'action' ? fitsAction(situation.text) : fitsPrompt(situation.text);
  const ranked = rules
    .map((rule) => ({
      rule,
      fit: fits(rule.text),
      tokens: estimateTextTokens(rule.text),
    }))
    .filter(({ fit }) => fit > 0)
    .toSorted((a, b) => b.fit - a.fit || a.tokens - b.tokens);
  let left = tokensMax;
  return ranked
    .filter(({ tokens }) => {
      if (tokens + LINE_TOKENS > left) return false;
      left -= tokens + LINE_TOKENS;
      return true;
    })
    .map(({ rule }) => rule);
}

/** Tokens that a rule's line has besides the rule: those of the dash, the speaker and the line end. */
const LINE_TOKENS = 5;

// Constructs of code, as rules and prompts name them. Names of two words, such as "class attribute", come first.
const CONSTRUCTS: readonly (readonly [string, RegExp])[] = [
  [
    'argument',
    /\b(?:(?:function|method|keyword|named) )?(?:arguments?|args|parameters?|params)\b/gi,
  ],
  ['attribute', /\b(?:(?:class|instance) )?(?:attributes?|fields?|propert(?:y|ies)|members?)\b/gi],
  ['variable', /\b(?:(?:local|global|env(?:ironment)?) )?(?:variables?|vars?|constants?)\b/gi],
  ['method', /\bmethods?\b/gi],
  ['function', /\bfunctions?\b/gi],
  ['class', /\bclass(?:es)?\b/gi],
  ['test', /\b(?:tests?|specs?|test suites?)\b/gi],
  ['commit', /\b(?:commits?|commit messages?|pull requests?|prs?)\b/gi],
  ['branch', /\bbranch(?:es)?\b/gi],
];

/** The parts and properties of a name that a rule may be about. */
const ASPECTS: readonly (readonly [string, RegExp])[] = [
  [
    'start',
    /\b(?:start|starts|starting|begin|begins|beginning|prefix|prefixes|prefixed|prefixing|prepend)\b/i,
  ],
  ['end', /\b(?:end|ends|ending|suffix|suffixes|suffixed|suffixing|append|terminate)\b/i],
  [
    'case',
    /\b(?:upper ?case|lower ?case|camel ?case|pascal ?case|snake_? ?case|kebab-? ?case|capital letters|all caps)\b/i,
  ],
  ['digit', /\b(?:digit|number)\b/i],
];

/**
 * Families of tools of which a project mostly uses one. A rule that names another tool of the family for the same thing
 * replaces the earlier rule.
 */
const FAMILIES = [
  ['npm', 'pnpm', 'yarn', 'bun'],
  ['pip', 'poetry', 'uv', 'conda', 'pipenv'],
  ['jest', 'vitest', 'mocha', 'ava', 'jasmine'],
  ['pytest', 'unittest', 'nose'],
  ['prettier', 'biome', 'oxfmt', 'dprint'],
  ['black', 'ruff', 'yapf', 'autopep8'],
  ['eslint', 'oxlint', 'tslint'],
  ['tab', 'space'],
  ['mysql', 'postgres', 'postgresql', 'sqlite'],
  ['playwright', 'cypress', 'selenium'],
  ['webpack', 'vite', 'rollup', 'esbuild', 'parcel'],
  [
    'english',
    'german',
    'french',
    'spanish',
    'italian',
    'portuguese',
    'russian',
    'chinese',
    'japanese',
  ],
].map((family) => family.flatMap(termsOf));

/** Terms that express a demand and say nothing about its subject. */
const EMPTY_TERMS = new Set(
  termsOf(
    'always never ever from now on going moving forward future remember please make sure ensure want like need would ' +
      'should must you your we us our i all every each any the this that these those one use using used add adding added include ' +
      'including incorporate write writing have having get into habit start starting it them they so also again just keep follow ' +
      'following convention practice standard guideline rule code coding python important consistent consistently consistency ' +
      'line lines update updated here project projects work working name names naming new change changed end ending begin even ' +
      'first second firstly secondly additionally when creating create declaring declare defining define module string string',
  ),
);

/** What a rule is about. */
interface Facets {
  /** The constructs of code that it names; see CONSTRUCTS. */
  readonly constructs: ReadonlySet<string>;
  /** Pairs of a construct and the part of its name that a rule is about, such as "method end". */
  readonly naming: ReadonlySet<string>;
  readonly terms: ReadonlySet<string>;
  /** The terms of what the rule says not to use. */
  readonly refused: ReadonlySet<string>;
  /** The terms of the rule without its contrast, such as "never npm"; see CONTRAST. */
  readonly affirmed: ReadonlySet<string>;
  /** True if the rule without its contrast says what not to do. */
  readonly isNegative: boolean;
  readonly scope: Scope;
}

function facetsOf(text: string): Facets {
  const constructs = constructsIn(text);
  const plain = text.replaceAll(CONTRAST, ' ');
  return {
    constructs,
    naming: namingIn(text),
    terms: tellingTerms(text),
    affirmed: plain === text ? tellingTerms(text) : tellingTerms(plain),
    refused: new Set([...text.matchAll(REFUSED)].flatMap(([, what = '']) => termsOf(what))),
    isNegative: NEGATIVE.test(plain),
    scope: scopeOf(text, constructs),
  };
}

function tellingTerms(text: string): Set<string> {
  return new Set(termsOf(withoutValues(text)).filter((term) => !EMPTY_TERMS.has(term)));
}

/** Matches ", never npm" in "we use pnpm here, never npm": a contrast at the end of a clause, which demands no more. */
const CONTRAST =
  /[,;:(]? ?(?:\band |\bbut )?\b(?:never|not) (?:use )?[\w@./-]{1,40}\b(?=\)?(?:[.,;!]|$))/gi;

const REFUSED =
  /\b(?:not|instead of|rather than|no longer(?: use)?|stop using|forget about|said about|no more)\s+((?:[\w@./-]+\s?){1,3})/gi;
const NEGATIVE = /\b(?:never(?! ?mind)|don'?t|do not|stop|avoid|no longer|no need|not)\b/i;

/** Removes quoted values ("_c"), except words of four or more characters, which may name the rule's subject. */
function withoutValues(text: string): string {
  return text.replaceAll(/(?<!\w)['"`][^'"`]{1,40}['"`](?!\w)/g, (value) =>
    /^['"`]@?\w{4,}['"`]$/.test(value) ? value : ' ',
  );
}

function constructsIn(text: string): Set<string> {
  const found = new Set<string>();
  let left = text;
  for (const [name, pattern] of CONSTRUCTS) {
    left = left.replaceAll(pattern, () => {
      found.add(name);
      return ' ';
    });
  }
  return found;
}

/**
 * Pairs each of the ASPECTS with the constructs of its clause; empty if the text is not about names. A clause without
 * constructs takes those of the clause before it; the first clause takes those of the whole sentence.
 */
function namingIn(text: string): Set<string> {
  const found = new Set<string>();
  if (
    !/\b(?:names?|naming|named|them|prefix|suffix|case)\b/i.test(text) &&
    !/['"`]_?\w{1,4}_?['"`]/.test(text)
  )
    return found;
  const all = constructsIn(text);
  let last: ReadonlySet<string> = all;
  for (const clause of text.split(/,|;|\band\b|\bwhile\b|\bbut\b/)) {
    const own = constructsIn(clause);
    const named = own.size > 0 ? own : last;
    last = named;
    for (const [aspect, pattern] of ASPECTS) {
      if (!pattern.test(clause)) continue;
      if (
        /\b(?:start|begin)\w*\b(?! (?:all|any|each|every|my|new|our|the|your|with|\w+ names?|function|method|variable|attribute|argument|class|them|it))/i.test(
          clause,
        ) &&
        aspect === 'start' &&
        !/\b(?:start|begin)s? with\b|prefix/i.test(clause)
      )
        continue;
      for (const construct of named) found.add(`${construct} ${aspect}`);
    }
    const string = /\bstring ['"`](\w+)['"`]/i.exec(clause)?.[1];
    if (string !== undefined) for (const construct of named) found.add(`${construct} holds`);
  }
  return found;
}

/** Least share of the shorter rule's terms that both rules must have to be about the same thing. */
const SAME_SHARE = 0.75;
/** Least share of the longer rule's terms that both rules must have. */
const SAME_SHARE_OF_LONGER = 0.5;

/** Says whether the later rule is about the same thing as the earlier one and so replaces it. */
function replaces(later: Facets, earlier: Facets): boolean {
  if (later.naming.size > 0 || earlier.naming.size > 0) {
    return [...earlier.naming].some((one) => later.naming.has(one));
  }
  if (areApart(later.constructs, earlier.constructs)) return false;
  for (const term of later.refused)
    if (earlier.terms.has(term) && !earlier.refused.has(term)) return true;
  if (!later.isNegative && !earlier.isNegative && namesOtherTool(later, earlier)) return true;
  let shared = 0;
  for (const term of earlier.terms) if (later.terms.has(term)) shared += 1;
  return (
    shared > 0 &&
    shared >= SAME_SHARE * Math.min(later.terms.size, earlier.terms.size) &&
    shared >= SAME_SHARE_OF_LONGER * Math.max(later.terms.size, earlier.terms.size)
  );
}

/**
 * Says whether the rules name different tools of one family, one tool each, for the same thing. "use jest for the
 * frontend" and "use mocha for the backend" both hold, because they are for different things.
 */
function namesOtherTool(later: Facets, earlier: Facets): boolean {
  if (later.scope !== earlier.scope) return false;
  return FAMILIES.some((family) => {
    const [one, other] = [later, earlier].map(({ affirmed, refused }) =>
      family.filter((tool) => affirmed.has(tool) && !refused.has(tool)),
    );
    if (one?.length !== 1 || other?.length !== 1 || one[0] === other[0]) return false;
    const rest = [later, earlier].map(({ affirmed }) =>
      [...affirmed].filter((term) => !family.includes(term)),
    );
    const [first = [], second = []] = rest;
    return first.length === 0 || second.length === 0 || first.some((term) => second.includes(term));
  });
}

function areApart(one: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return one.size > 0 && other.size > 0 && ![...one].some((name) => other.has(name));
}

/** The subject of a rule, as far as a prompt or an action can show that the rule applies. */
type Scope = 'code' | 'test' | 'git' | 'answer' | 'packages' | 'other';

const ABOUT_ALL = new RegExp(`\\b${WHATEVER_YOU_MAKE}\\b`, 'i');

function scopeOf(text: string, constructs: ReadonlySet<string>): Scope {
  // A rule about everything that the agent makes applies to every prompt, because each prompt ends in an answer.
  if (ABOUT_ALL.test(text)) return 'answer';
  if (
    /\b(?:answer|reply|respond|explain|speak|talk to me|summari[sz]e|tone|emojis?|language of (?:the )?answers?)\b/i.test(
      text,
    ) &&
    !/\bcode\b/i.test(text)
  )
    return 'answer';
  if (
    /\b(?:commit|commits|branch|branches|push|merge|rebase|squash|prs?|pull requests?|changelog|git)\b/i.test(
      text,
    )
  )
    return 'git';
  if (/\b(?:npm|pnpm|yarn|bun|pip|poetry|uv|conda|dependenc\w+|packages?|install)\b/i.test(text))
    return 'packages';
  if (/\b(?:tests?|specs?|mocks?|fixtures?|snapshots?|coverage)\b/i.test(text)) return 'test';
  const isCode =
    constructs.size > 0 ||
    /\b(?:code|comments?|docstrings?|types?|annotations?|decorators?|imports?|modules?|statements?|assert\w*|exceptions?|indent\w*|quotes?|naming|identifiers?|files?|folders?|lint\w*|format\w*|refactor\w*|functions?|logs?|logging|any|enums?|interfaces?)\b/i.test(
      text,
    );
  return isCode ? 'code' : 'other';
}

/** What a prompt is about. */
interface Asked {
  readonly constructs: ReadonlySet<string>;
  readonly terms: ReadonlySet<string>;
  readonly scopes: ReadonlySet<Scope>;
}

const WRITES_CODE =
  /\b(?:write|implement|add|create|build|make|code|develop|refactor|rewrite|fix|change|update|port|extend|generate|convert|replace|rename|extract|split|move|introduce|support|migrate|handle|complete|finish|optimi[sz]e|improve|function|class|method|script|module|component|endpoint|feature|bug)\b/i;

function fitsPrompt(prompt: string): (rule: string) => number {
  const asked = askedBy(prompt);
  return (rule) => fitOf(facetsOf(rule), asked);
}

function askedBy(text: string): Asked {
  const scopes = new Set<Scope>(['answer']);
  if (WRITES_CODE.test(text)) scopes.add('code');
  if (/\b(?:tests?|testing|coverage|specs?)\b/i.test(text)) scopes.add('test');
  if (
    /\b(?:commit|push(?! (?:method|function|and pop))|merge|rebase|branch|pr|pull request|git|changelog)\b/i.test(
      text,
    )
  )
    scopes.add('git');
  if (
    /\b(?:install|dependenc\w+|packages?|upgrade|npm|pnpm|yarn|bun|npx|pip|poetry|uv|add)\b/i.test(
      text,
    )
  )
    scopes.add('packages');
  return { constructs: constructsIn(text), terms: new Set(termsOf(text)), scopes };
}

/** For some constructs, others that are written with them. A rule about an argument applies to a new function too. */
const COMES_WITH: Readonly<Record<string, readonly string[]>> = {
  function: ['argument', 'variable'],
  method: ['argument', 'variable', 'attribute', 'class'],
  class: ['method', 'attribute', 'argument', 'variable'],
};

/** Scores how well a rule applies to a prompt; 0 if it does not apply. */
function fitOf({ constructs, terms, scope }: Facets, asked: Asked): number {
  let shared = 0;
  for (const term of terms) if (asked.terms.has(term)) shared += 1;
  if (scope === 'other') return shared > 0 ? 1 : 0;
  if (!asked.scopes.has(scope)) return shared > 1 ? 1 : 0;
  if (constructs.size === 0 || asked.constructs.size === 0) return 2;
  const meant = new Set(
    [...asked.constructs].flatMap((name) => [name, ...(COMES_WITH[name] ?? [])]),
  );
  return [...constructs].some((name) => meant.has(name)) ? 3 : 1;
}

// Patterns of commands and file names that show the kind of work.
const ACTIONS: readonly (readonly [Scope, RegExp])[] = [
  [
    'git',
    /\bgit (?:-[cC] \S+ |-\S+ )*(?:commit|push|merge|rebase|branch|switch|tag|cherry-pick|checkout -b)\b|\bgh (?:pr|release)\b/,
  ],
  [
    'packages',
    /\b(?:npm|pnpm|yarn|bun|pip3?|poetry|uv|cargo|go|composer|bundle|gem) (?:i|install|add|get|remove|uninstall|update|upgrade)\b|\bnpx\b|\b(?:package\.json|requirements\.txt|pyproject\.toml|Cargo\.toml|go\.mod)\b/,
  ],
  [
    'test',
    /\b(?:npm|pnpm|yarn|bun) (?:run )?test\b|\b(?:vitest|jest|pytest|mocha|rspec|go test|cargo test)\b|[._](?:test|spec)\.|\btest_\w+\.py\b/,
  ],
];

// For each language, how a rule names it, and how the names of its files end.
const LANGUAGES: readonly (readonly [RegExp, RegExp])[] = [
  [/\bpython\b/i, /\.py\b/],
  [/\btypescript\b|\bts files?\b/i, /\.[cm]?tsx?\b/],
  [/\bjavascript\b|\bjs files?\b/i, /\.[cm]?jsx?\b/],
  [/\bgo(?:lang)? (?:code|files?|tests?)\b/i, /\.go\b/],
  [/\brust\b/i, /\.rs\b/],
  [/\bjava\b/i, /\.java\b/],
  [/\bkotlin\b/i, /\.kts?\b/],
  [/\bruby\b/i, /\.rb\b/],
  [/\bphp\b/i, /\.php\b/],
  [/\bsql\b|\bmigrations?\b/i, /\.sql\b|\bmigrations?\//],
  [/\bcss\b/i, /\.(?:s?css|less)\b/],
  [/\bmarkdown\b/i, /\.mdx?\b/],
];

/**
 * Least number of informative words that an action must share with a rule if the action is not the rule's kind of work;
 * one is shared by chance.
 */
const SHARED_MIN = 2;

/**
 * Returns a function that scores rules for an action; 0 if a rule does not apply. Rules about answers do not apply. Any
 * other rule applies if the action contains code that the rule quotes in backticks. If the action has no such code, a
 * rule that names a language applies only to files of that language, and a rule without a language applies if the
 * action is the rule's kind of work or shares SHARED_MIN words with the rule. Code is no kind of work here, because
 * most actions touch code.
 */
function fitsAction(action: string): (rule: string) => number {
  const scopes = new Set(
    ACTIONS.flatMap(([scope, pattern]) => (pattern.test(action) ? scope : [])),
  );
  const terms = new Set(termsOf(action));
  const flat = action.replaceAll(/\s+/g, ' ');
  return (rule) => {
    const facets = facetsOf(rule);
    if (facets.scope === 'answer') return 0;
    const named = [...rule.matchAll(/`([^`]{3,80})`/g)].map(([, code = '']) => code);
    if (named.some((code) => flat.includes(code))) return 3;
    const languages = LANGUAGES.filter(([name]) => name.test(rule));
    if (languages.length > 0) return languages.some(([, file]) => file.test(action)) ? 2 : 0;
    if (scopes.has(facets.scope)) return 2;
    let shared = 0;
    for (const term of facets.terms) if (terms.has(term) && isTelling(term)) shared += 1;
    return shared >= SHARED_MIN ? 1 : 0;
  };
}
