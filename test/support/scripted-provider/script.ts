import { randomBytes } from 'node:crypto';
import { type ToolCall, type ToolSpec, callTool } from './tool-calls.ts';

/**
 * Decides an answer from directives in the request's own text. The provider keeps no state: the
 * newest text that holds a directive counts, and the tool results after it say how far its plan is.
 *
 *   [[plan=bash:ls -1|bash:echo step {i}*20|task:prompt]]  tools to call, in order; {i} counts repeats
 *                  the step reread:N does what the Nth stub in the tool results says: it runs its command
 *   [[par=2]]      so many planned tools in one answer
 *   [[think=0]]    no reasoning
 *   [[final=TEXT]] the last answer; without it, the last tool result is echoed
 *   [[long=N]]     the last answer gets N characters more
 *   [[gap=MS]]     a pause between two events
 *
 * Inside a step, `<<`, `>>` and `;;` stand for `[[`, `]]` and `|`: directives for a sub-agent.
 */

export interface PromptText {
  /** Order in the conversation. */
  readonly at: number;
  readonly text: string;
}

/** What a script sees of a request, the same in every dialect. */
export interface Prompt {
  readonly texts: readonly PromptText[];
  readonly toolResults: readonly PromptText[];
  readonly tools: readonly ToolSpec[];
}

export interface Decision {
  /** Empty: `final` is the answer. */
  readonly calls: readonly ToolCall[];
  readonly final: string;
  /** Tool results since the directive. */
  readonly step: number;
  readonly thinks: boolean;
  readonly gapMs: number;
}

interface Step {
  readonly kind: string;
  readonly argument: string;
}

interface Directives {
  readonly plan: readonly Step[];
  readonly parallel: number;
  readonly thinks: boolean;
  readonly longChars: number;
  readonly gapMs: number;
  readonly final: string | undefined;
}

const FILLER = 'lorem ipsum dolor sit amet ';
// Enough of a result to name a file; a whole build log would only slow the tests.
const ECHO_CHARS = 1500;

export function decide(prompt: Prompt): Decision {
  const texts = prompt.texts.map(({ at, text }) => ({ at, text: withoutMemories(text) }));
  const scripted = texts.findLast(({ text }) => /\[\[(plan|final|par|think|long|gap)=/.test(text));
  const directives = readDirectives(scripted?.text ?? '');
  const done = prompt.toolResults.filter(({ at }) => at > (scripted?.at ?? -1));
  const calls = directives.plan
    .slice(done.length, done.length + directives.parallel)
    .map((step) => (step.kind === 'reread' ? rereadStep(step.argument, prompt) : step))
    .map(({ kind, argument }) => callTool(kind, argument, prompt.tools))
    .filter((call) => call !== undefined);
  return {
    calls,
    final: finalText(directives, done.at(-1)?.text, prompt.tools.length > 0),
    step: done.length,
    thinks: directives.thinks,
    gapMs: directives.gapMs,
  };
}

/** A model that needs what a stub stands for, and reads there how to get it. */
function rereadStep(nth: string, { toolResults }: Prompt): Step {
  const commands = toolResults.flatMap(
    ({ text }) => text.match(/svc memory get m_[a-z2-7]+(?: --(?:lines|around) [\w.-]+)?/) ?? [],
  );
  return { kind: 'bash', argument: commands[Number(nth) - 1] ?? 'echo no stub says how' };
}

export function randomId(prefix: string): string {
  return prefix + randomBytes(12).toString('hex');
}

// A recalled block quotes earlier prompts with their directives: those are over.
function withoutMemories(text: string): string {
  return text.replaceAll(/<svc-memory[\s\S]*?<\/svc-memory>/g, '');
}

function finalText(
  directives: Directives,
  lastResult: string | undefined,
  hasTools: boolean,
): string {
  const { final, longChars } = directives;
  const text = final ?? defaultText(lastResult, hasTools);
  if (longChars === 0) return text;
  const filler = FILLER.repeat(Math.ceil(longChars / FILLER.length)).slice(0, longChars);
  return `${text} ${filler}`;
}

function defaultText(lastResult: string | undefined, hasTools: boolean): string {
  if (lastResult !== undefined) return `Result: ${lastResult.slice(-ECHO_CHARS)}`;
  // Requests without tools are titles and topics: clients parse the answer as JSON.
  return hasTools ? 'Scripted answer, no tool was called.' : '{"title":"Scripted title"}';
}

function readDirectives(text: string): Directives {
  const values = new Map<string, string>();
  for (const [, name = '', value = ''] of text.matchAll(/\[\[(\w+)=(.*?)\]\]/gs)) {
    values.set(name, value);
  }
  return {
    plan: readPlan(values.get('plan') ?? ''),
    parallel: Number(values.get('par') ?? 1),
    thinks: values.get('think') !== '0',
    longChars: Number(values.get('long') ?? 0),
    gapMs: Number(values.get('gap') ?? 0),
    final: values.get('final'),
  };
}

function readPlan(plan: string): readonly Step[] {
  return plan.split('|').flatMap((step) => {
    const match = /^([A-Za-z_]\w*)(?::(.*?))?(?:\*(\d+))?$/s.exec(step);
    if (match === null) return [];
    const [, kind = '', argument = '', repeats = '1'] = match;
    return Array.from({ length: Number(repeats) }, (_, index) => ({
      kind,
      argument: nested(argument.replaceAll('{i}', String(index + 1))),
    }));
  });
}

function nested(argument: string): string {
  return argument.replaceAll('<<', '[[').replaceAll('>>', ']]').replaceAll(';;', '|');
}
