/** Text that looks like a coding agent's, the same for the same seed. */

const CODE_WORDS =
  'const let function return await async import export class extends new this if else for while switch case break try catch finally throw typeof instanceof request response buffer stream header token cache index value result error message config option handler server client socket pipe chunk parse encode decode hash digest segment history memory recall capture budget limit offset length count total items entries keys values map filter reduce push slice splice concat join split trim replace match test exec'.split(
    ' ',
  );
const PROSE_WORDS =
  'the a of to and in is that it for on with as this be are by at from or an was not have which can has its will but use when file code test change update fix add remove user should make sure then before after because only every each same different path line value type error result module'.split(
    ' ',
  );

/** xorshift32: numbers from 0 up to 1. */
export function randomOf(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

function pick(random, words) {
  return words[Math.floor(random() * words.length)];
}

export function makeCode(random, chars) {
  const word = () => pick(random, CODE_WORDS);
  const number = (below) => Math.floor(random() * below);
  let code = '';
  let depth = 0;
  while (code.length < chars) {
    const kind = random();
    const margin = '  '.repeat(depth);
    if (kind < 0.12) {
      code += `${margin}if (${word()}.${word()} === "${word()}\\u00e9") {\n`;
      depth = Math.min(depth + 1, 5);
    } else if (kind < 0.24 && depth > 0) {
      depth -= 1;
      code += `${margin}}\n`;
    } else if (kind < 0.34) {
      code += `${margin}// ${Array.from({ length: 6 }, () => pick(random, PROSE_WORDS)).join(' ')}\n`;
    } else {
      code += `${margin}const ${word()}${number(1000)} = ${word()}.${word()}(${word()}, '${word()}', ${number(1e6)});\n`;
    }
  }
  return code.slice(0, chars);
}

/**
 * About half of the words are the small ones of English. The others come from as many words as a person
 * uses, a few often and most of them seldom: a search over such text finds little, as it does in life.
 */
export function makeProse(random, chars) {
  let prose = '';
  while (prose.length < chars) {
    const words = Array.from({ length: 6 + Math.floor(random() * 12) }, () =>
      random() < 0.5 ? pick(random, PROSE_WORDS) : makeWord(Math.floor(VOCABULARY ** random())),
    );
    const sentence = words.join(' ');
    prose += `${sentence[0].toUpperCase()}${sentence.slice(1)}${random() < 0.1 ? '.\n\n' : '. '}`;
  }
  return prose.slice(0, chars);
}

const VOCABULARY = 20_000;
const SYLLABLES = 'ba ce di fo gu ha ki le mo nu pa re si to va we xi yo za ru'.split(' ');

/** Another word for each number. */
function makeWord(number) {
  const syllables = [];
  for (let left = number + SYLLABLES.length; left > 0; left = Math.floor(left / SYLLABLES.length)) {
    syllables.push(SYLLABLES[left % SYLLABLES.length]);
  }
  return syllables.join('');
}

export function makeHex(random, chars) {
  return Array.from({ length: chars }, () => Math.floor(random() * 16).toString(16)).join('');
}
