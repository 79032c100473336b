import { randomBytes } from 'node:crypto';
import { field, isObject, textField } from '../scripted-provider/loose-json.ts';
import { measure } from './canonical.ts';
import { type Refusal, shape } from './judgement.ts';
import { type Readings, type Version, isAtLeast } from './settings.ts';

/** OpenAI Responses: calls with their outputs, and reasoning items that are bound to what stands before them. */

export interface ResponsesItem {
  readonly type: string;
  readonly id: string;
  readonly digest: string;
  readonly tokens: number;
  readonly value: unknown;
}

export function readInput(json: unknown): readonly ResponsesItem[] {
  const input = field(json, 'input');
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : input;
  return (Array.isArray(items) ? items : []).map((value: unknown) => ({
    type: textField(value, 'type') || 'message',
    id: textField(value, 'id'),
    ...measure(value),
    value,
  }));
}

/** The words are those of the public API. */
export function refusedItems(json: unknown, items: readonly ResponsesItem[]): Refusal | undefined {
  const idsOf = (isOutput: boolean): ReadonlySet<string> =>
    new Set(
      items
        .filter(({ type }) => (isOutput ? type.endsWith('_call_output') : type.endsWith('_call')))
        .map(({ value }) => textField(value, 'call_id')),
    );
  const [calls, outputs] = [idsOf(false), idsOf(true)];
  const unanswered = [...calls].find((id) => id !== '' && !outputs.has(id));
  if (unanswered !== undefined) {
    return shape('', `No tool output found for function call ${unanswered}.`);
  }
  const uncalled = [...outputs].find((id) => !calls.has(id));
  if (uncalled !== undefined) {
    return shape('', `No tool call found for function call output with call_id ${uncalled}.`);
  }
  const alone = items.find(({ type }, at) => type === 'reasoning' && !isFollowed(items[at + 1]));
  if (alone !== undefined) {
    return shape(
      '',
      `Item '${alone.id}' of type 'reasoning' was provided without its required following item.`,
    );
  }
  // Refused on gpt-6 (prompt-caching, digest of 2026-09-22).
  const [major] = gptVersion(textField(json, 'model')) ?? [0];
  if (major < 6 || field(json, 'prompt_cache_retention') === undefined) return undefined;
  return shape(
    '',
    "Unsupported parameter: 'prompt_cache_retention' is not supported with this model.",
  );
}

/** Something that the model made must follow its reasoning. */
function isFollowed(next: ResponsesItem | undefined): boolean {
  if (next === undefined || next.type.endsWith('_output')) return false;
  return next.type !== 'message' || field(next.value, 'role') === 'assistant';
}

/** `gpt-5.3-codex` is 5.3; undefined for other makers. */
export function gptVersion(model: string): Version | undefined {
  const [, major, minor = '0'] = /gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

interface Binding {
  /** The model that made it is one that binds. */
  readonly isBound: boolean;
  readonly head: string;
  readonly before: readonly string[];
}

export interface ReasoningCheck {
  /** Encrypted content that no answer had. */
  readonly damaged: ResponsesItem | undefined;
  readonly mismatched: readonly { readonly seal: string; readonly item: ResponsesItem }[];
  readonly seal: <Part extends object>(output: readonly Part[]) => readonly Part[];
}

export class BoundReasoning {
  readonly #bindings = new Map<string, Binding>();
  readonly #readings: Readings;

  constructor(readings: Readings) {
    this.#readings = readings;
  }

  /** Reasoning behind a changed prefix is dropped without an error (keep-prefix-unchanged, 2026-11). */
  check(json: unknown, items: readonly ResponsesItem[]): ReasoningCheck {
    const version = gptVersion(textField(json, 'model'));
    const isBound = version !== undefined && isAtLeast(version, this.#readings.reasoningBoundFrom);
    const head = this.#headOf(json, version);
    const mismatched: { seal: string; item: ResponsesItem }[] = [];
    let before: string[] = [];
    let damaged: ResponsesItem | undefined;
    for (const item of items) {
      // A compaction item of OpenAI restarts the prefix: "later reasoning is kept".
      if (isCompaction(item)) before = [];
      const seal = textField(item.value, 'encrypted_content');
      if (item.type !== 'reasoning' || seal === '') {
        before.push(item.digest);
        continue;
      }
      const binding = this.#bindings.get(seal);
      if (binding === undefined) damaged ??= item;
      else if (
        isBound &&
        (binding.isBound || this.#readings.olderBlocksAreBound) &&
        !isUnchanged(binding, { head, before, isBound }, items)
      ) {
        mismatched.push({ seal, item });
      }
      if (this.#readings.earlierReasoningCounts) before.push(item.digest);
    }
    return { damaged, mismatched, seal: (output) => this.#seal(output, { head, before, isBound }) };
  }

  /** Tools and `text.format`; `instructions` before GPT-6.2, which puts them behind the input (2026-11-19). */
  #headOf(json: unknown, version: Version | undefined): string {
    const { tools, text, instructions, reasoning } = isObject(json) ? json : {};
    const placesInstructionsLast = version !== undefined && isAtLeast(version, [6, 2]);
    return measure({
      tools,
      format: field(text, 'format'),
      instructions: placesInstructionsLast ? undefined : instructions,
      effort: this.#readings.effortCounts ? field(reasoning, 'effort') : undefined,
    }).digest;
  }

  #seal<Part extends object>(
    output: readonly Part[],
    { head, before, isBound }: Binding,
  ): readonly Part[] {
    const made: string[] = [];
    return output.map((part) => {
      if (field(part, 'type') !== 'reasoning') {
        made.push(measure(part).digest);
        return part;
      }
      const given = textField(part, 'encrypted_content');
      const seal = given === '' ? `gAAAA${randomBytes(96).toString('base64url')}` : given;
      this.#bindings.set(seal, { head, before: [...before, ...made], isBound });
      return { ...part, encrypted_content: seal };
    });
  }
}

function isUnchanged(binding: Binding, now: Binding, items: readonly ResponsesItem[]): boolean {
  if (binding.head !== now.head) return false;
  const isSame = binding.before.join() === now.before.join();
  // Made before the compaction: "kept although the prefix changed" (2026-11-19).
  return isSame || (items.some(isCompaction) && binding.before[0] !== now.before[0]);
}

function isCompaction({ type }: ResponsesItem): boolean {
  return type === 'compaction' || type === 'compaction_summary';
}
