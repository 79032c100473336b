import { STOP_WORDS, termsOf } from './terms.ts';

/**
 * Separates the words of a question that only ask from those that name its subject. Stop words are English. In other
 * languages, question words would look like rare words that the memory does not know, and recall would return
 * nothing. So question words count in the ranking, but are no evidence for or against a passage.
 */
export interface Wording {
  /** Terms of the language's question and function words; empty in English, in which they are stop words. */
  readonly asking: ReadonlySet<string>;
  /** Terms written as a proper name. Empty unless the text is English: German, for example, capitalises all nouns. */
  readonly names: ReadonlySet<string>;
}

export function readWording(text: string): Wording {
  const words = text.toLowerCase().match(WORD) ?? [];
  const isEnglish = countIn(STOP_WORDS, words);
  let most = isEnglish;
  let language: ReadonlySet<string> | undefined;
  for (const list of LANGUAGES) {
    const count = countIn(list, words);
    if (count <= most) continue;
    most = count;
    language = list;
  }
  if (language !== undefined) {
    return { asking: new Set(termsOf([...language].join(' '))), names: NONE };
  }
  return { asking: NONE, names: isEnglish > 0 ? namesIn(text) : NONE };
}

/**
 * Says whether a term has a character that serves grammar. In scripts without spaces terms are pairs of characters, and
 * a pair with such a character mostly spans two words.
 */
export function isGrammar(term: string): boolean {
  return GRAMMAR.test(term);
}

export function asksWithoutSign(text: string): boolean {
  return ASKING_END.test(text) || ASKING_START.test(text);
}

const WORD = /\p{L}+/gu;
const NONE: ReadonlySet<string> = new Set();

function countIn(list: ReadonlySet<string>, words: readonly string[]): number {
  return words.filter((word) => list.has(word)).length;
}

/**
 * Matches a capitalised word after another word, so not at a sentence's start; acronyms and identifiers do not
 * match.
 */
const NAME =
  /(?<=[\p{L}\p{N},;:)"'’][ \n]["'“(]?)\p{Lu}\p{Ll}+(?![\p{L}\p{N}_]|[-./:][\p{L}\p{N}_])/gu;
/** Share of capitalised words above which a text counts as a heading. */
const NAMES_SHARE_MAX = 0.5;

function namesIn(text: string): ReadonlySet<string> {
  const names = text.match(NAME) ?? [];
  const words = text.match(WORD) ?? [];
  if (names.length > NAMES_SHARE_MAX * words.length) return NONE;
  return new Set(names.flatMap((name) => termsOf(name)));
}

// Matches Chinese function characters; and hiragana, which Japanese uses for endings and particles.
const GRAMMAR =
  /[的了是在吗嗎呢吧么麼什哪个個怎谁誰几幾我你们們有和就都也要会會被把这這那]|\p{sc=Hiragana}/u;
const ASKING_END = /[吗嗎呢か][。.!！\s]*$/u;
const ASKING_START =
  /^\W*(?:wer|wie|was|wo|wann|warum|wieso|welche[mnrs]?|wem|wen|qué|cómo|cuándo|dónde|quién|cuál|cuánt[ao]s?|qui|quoi|quand|où|comment|pourquoi|combien|quel(?:le)?s?|chi|quando|dove|perché|quale|quanto|quanti|как|что|где|когда|почему|кто|сколько|какой|какая|какие|зачем)(?!\p{L})/iu;

/** The most common function words and question words of each language. */
const LANGUAGES: readonly ReadonlySet<string>[] = [
  `aber alle als am an auch auf aus bei bin bis das dass dem den der des die dir doch du ein eine einem
  einen einer eines er es für gibt haben hat hatte ich ihr im in ist ja kann kein keine können man mein
  meine meinem meinen meiner meines mich mir mit muss nach nicht noch nur oder ob sein seine sich sie
  sind so soll sollen über um und uns unser unsere viel viele vom von vor wann war waren warum was welche
  welchem welchen welcher welches wem wen wer werden wie wieso wieviel will wir wird wo wurde wurden zu
  zum zur`,
  `al algo así aún cada como cómo con cual cuál cuáles cuándo cuando cuánta cuántas cuánto cuántos de del
  desde donde dónde el ella en era eres es esa ese eso está están estoy este esto fue ha hace han hasta
  hay la las le les lo los más me mi mis muy no nos nuestra nuestro o para pero por porque que qué quién
  se ser si sí sin sobre son su sus también te tengo tiene todo tu un una unos usamos y ya yo`,
  `à au aux avec avons c'est ce ces cet cette comment combien dans de des dont du elle en est et était
  être fait il ils j'ai je la le les leur lui ma mais me mes moi mon ne nos notre nous on ou où par pas
  plus pour pourquoi qu quand que quel quelle quelles quels qui quoi sa sans se ses si son sont sur ta te
  tu un une vos votre vous`,
  `a ai al alla anche che chi ci come con cosa da dal dalla dei del della delle di dove e è era gli ha
  hanno ho i il in io la le lo ma mi mia mio nei nel nella non o per perché più quale quali quando quanti
  quanto questa questo se si sono su tra un una uno`,
  `a ao aos as com como da das de do dos e é ela ele em era essa esse está este eu foi há isso já mais
  mas me meu minha na não nas no nos nós o onde os ou para pela pelo por porque qual quais quando quanto
  quantos que quem se sem ser seu sua são também tem um uma`,
  `aan als bij dat de deze die dit door een en er had heb hebben heeft het hij hoe hoeveel ik in is je
  kan maar meer met mijn naar niet nog om ons onze ook op over te toen tot uit van voor waar waarom
  wanneer was wat we welk welke wie wij wordt zal ze zich zijn zo`,
  `а без бы был была были было быть в вам вас вы где для до его её если есть ещё же за зачем и из или им
  их к как какая какие какое какой какую когда кому кто кого куда ли меня мне мой моя мы на над нам нас
  наш не нет но о об он она они от откуда по под почему при с сколько со так там то тоже только ты у уже
  что чтобы эта это этот я`,
].map((list) => new Set(list.split(/\s+/)));
