/**
 * Leaves out the reasoning that a model wrote into its visible text. Servers of open models that know no
 * parser for a model send its raw output, and Gemini sends its thoughts as text where a client asks for them.
 *
 * The forms are those of vLLM's reasoning parsers, of Gemini's OpenAI layer and of OpenAI's harmony format,
 * as documented in November 2026.
 */

/** Elements, in any case: DeepSeek, Qwen and GLM; Gemini; Seed; prompts of people. */
const NAMES = '(?:\\w+:)?think(?:ing)?|thoughts?|reasoning';
/** Pairs of marks: Mistral, Cohere, Gemma 4, Kimi, Apertus. */
const PAIRS = [
  ['[THINK]', '[/THINK]'],
  ['<|START_THINKING|>', '<|END_THINKING|>'],
  ['<|channel>thought', '<channel|>'],
  ['◁think▷', '◁/think▷'],
  ['<|inner_prefix|>', '<|inner_suffix|>'],
] as const;

const MAYBE = /think|thought|reasoning|channel|analysis|inner_/i;

// Each begins a line. One that never closes was cut off.
const ELEMENT = new RegExp(`(?:^|\\n)[ \\t]*<(${NAMES})(?:\\s[^>\\n]*)?>[^]*?(?:</\\1>|$)`, 'gi');
const PAIRED = PAIRS.map(
  ([open, close]) =>
    new RegExp(`(?:^|\\n)[ \\t]*${literal(open)}[^]*?(?:${literal(close)}|$)`, 'g'),
);
// A mark in quotes or as code is one that the text is about.
const MARK = new RegExp(
  `(?<![\`'"])(?:<(/?)(${NAMES})>|${PAIRS.flat().map(literal).join('|')})(?![\`'"])`,
  'gi',
);

/** The text without what a model thought in it. */
export function withoutWrittenThoughts(text: string): string {
  if (!MAYBE.test(text)) return text;
  let rest = finalChannel(text).replaceAll(ELEMENT, '\n');
  for (const pair of PAIRED) rest = rest.replaceAll(pair, '\n');
  return rest.slice(afterLastClose(rest)).trim();
}

/** Where the prompt's template opened the thought, the answer only closes it. */
function afterLastClose(text: string): number {
  const opened = new Set<string>();
  let end = 0;
  for (const match of text.matchAll(MARK)) {
    const [mark, slash, name] = match;
    const pair = PAIRS.find((one) => one.some((side) => side === mark));
    const key = (name ?? pair?.[0] ?? '').toLowerCase();
    const isClose = name === undefined ? pair?.[1] === mark : slash === '/';
    if (!isClose) opened.add(key);
    else if (!opened.has(key)) end = match.index + mark.length;
  }
  return end;
}

const MESSAGE_ENDS = /<\|start\|>(?:assistant)?|<\|(?:end|return|call)\|>/;
const MESSAGE = /^\s*<\|channel\|>(\w*)([^]*?)<\|message\|>([^]*)$/;
/** A server that leaves the marks out writes the names of the channels into the text. */
const UNMARKED = /^\s*analysis[^]*assistantfinal/;

/** Keeps harmony's `final` channel, and `commentary` that is for the person and not for a tool. */
function finalChannel(text: string): string {
  if (!text.includes('<|channel|>')) return text.replace(UNMARKED, '');
  const said: string[] = [];
  for (const part of text.split(MESSAGE_ENDS)) {
    const [isMessage, channel, recipient = '', content = ''] = MESSAGE.exec(part) ?? [];
    const isSaid = channel === 'final' || (channel === 'commentary' && !recipient.includes('to='));
    // A message that was cut off before its content says nothing.
    if (isMessage === undefined && !/^\s*<\|channel\|>/.test(part)) said.push(part);
    else if (isSaid) said.push(content);
  }
  return said.join('\n');
}

function literal(mark: string): string {
  return mark.replaceAll(/[[\]|/]/g, String.raw`\$&`);
}
