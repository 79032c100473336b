import { randomBytes } from 'node:crypto';
import { isObject } from '../scripted-provider/loose-json.ts';
import { type ClaudeModel, canRead, checksPrefix, claudeModel } from './claude-models.ts';
import {
  type MessagesPrefix,
  type Piece,
  type Thought,
  piecesOfMessage,
} from './messages-prefix.ts';
import type { Readings } from './settings.ts';

/** What each signature is bound to, and which thinking blocks of a request are not what they were. */

/** What the provider knows of a block that it made. */
interface Binding {
  readonly model: ClaudeModel;
  readonly text: string;
  readonly system: string;
  readonly tools: string;
  /** Everything before it in the messages but thinking. */
  readonly before: readonly Piece[];
  /** The block that came before it and was valid; a kept run must not have a gap. */
  readonly previous: string | undefined;
}

export interface Failed {
  readonly thought: Thought;
  readonly path: string;
  /** The last sentence of the error, as far as its words are known. */
  readonly change: string | undefined;
}

export interface ThinkingCheck {
  /** A signature that no answer had, or that covers another text. */
  readonly damaged: Failed | undefined;
  readonly mismatched: readonly Failed[];
  readonly unreadable: readonly Failed[];
  readonly seal: <Part extends object>(output: readonly Part[]) => readonly Part[];
}

export class BoundThinking {
  readonly #bindings = new Map<string, Binding>();
  readonly #readings: Readings;

  constructor(readings: Readings) {
    this.#readings = readings;
  }

  check(prefix: MessagesPrefix, modelName: string): ThinkingCheck {
    const model = claudeModel(modelName);
    const head = { system: joined(prefix.system), tools: this.#toolsOf(prefix) };
    const mismatched: Failed[] = [];
    const unreadable: Failed[] = [];
    const before: Piece[] = [];
    let damaged: Failed | undefined;
    let previous: string | undefined;
    for (const piece of prefix.messages) {
      const { thought, path } = piece;
      if (thought === undefined) {
        before.push(piece);
        continue;
      }
      const binding = this.#bindings.get(thought.seal);
      if (binding === undefined || ![binding.text, ''].includes(thought.text)) {
        damaged ??= { thought, path, change: undefined };
        continue;
      }
      if (model !== undefined && !canRead(model, binding.model, this.#readings)) {
        unreadable.push({ thought, path, change: undefined });
      } else if (this.#isChecked(model, binding)) {
        const isFirst = previous === undefined && mismatched.length === 0;
        const hasGap = !isFirst && binding.previous !== previous;
        const change = changeOf(binding, { ...head, before });
        if (hasGap || change !== undefined) {
          mismatched.push({ thought, path, change });
          continue;
        }
      }
      previous = thought.seal;
    }
    const bound = { ...head, before, previous, model };
    return { damaged, mismatched, unreadable, seal: (output) => this.#seal(output, bound) };
  }

  #isChecked(model: ClaudeModel | undefined, { model: maker }: Binding): boolean {
    if (model === undefined || !checksPrefix(model, this.#readings)) return false;
    return this.#readings.olderBlocksAreBound || checksPrefix(maker, this.#readings);
  }

  #toolsOf({ tools }: MessagesPrefix): string {
    const digests = tools.map(({ digest }) => digest);
    return (this.#readings.toolOrderCounts ? digests : digests.toSorted()).join();
  }

  /** "Each thinking block records which thinking block came before it, across turns." */
  #seal<Part extends object>(
    output: readonly Part[],
    bound: Omit<Binding, 'text' | 'model'> & { readonly model: ClaudeModel | undefined },
  ): readonly Part[] {
    const { model, ...rest } = bound;
    if (model === undefined) return output;
    const before = [...bound.before, ...piecesOfMessage({ role: 'assistant' }, '', this.#readings)];
    let previous = bound.previous;
    return output.map((part) => {
      const [, piece] = piecesOfMessage({ content: [part] }, '', this.#readings);
      if (piece?.thought === undefined) {
        // What the provider has compacted is no part of the prefix of what follows.
        if (piece?.isCompaction === true) before.length = 0;
        if (piece !== undefined) before.push(piece);
        return part;
      }
      const { type, text, seal: given } = piece.thought;
      const seal = given === '' ? randomBytes(96).toString('base64') : given;
      this.#bindings.set(seal, { ...rest, model, text, before: [...before], previous });
      previous = seal;
      const name = type === 'redacted_thinking' ? 'data' : 'signature';
      return isObject(part) ? { ...part, [name]: seal } : part;
    });
  }
}

/** What stands there instead of what the block was made behind; undefined where nothing changed. */
function changeOf(
  binding: Binding,
  now: Pick<Binding, 'system' | 'tools' | 'before'>,
): string | undefined {
  // The words for system and tools are an inference from "names the `system` prompt" (2026-09-26).
  if (binding.system !== now.system) {
    return 'The `system` prompt differs from when the block was created.';
  }
  if (binding.tools !== now.tools) {
    return 'The `tools` list differs from when the block was created.';
  }
  const length = Math.max(binding.before.length, now.before.length);
  for (let at = 0; at < length; at += 1) {
    const [was, is] = [binding.before[at], now.before[at]];
    if (was?.digest === is?.digest) continue;
    // Measured word for word on 2026-09-23 for a message that was gone; for other edits an inference.
    return `Content that preceded this block when it was created is missing from this request, starting at \`${was?.path ?? is?.path}\`.`;
  }
  return undefined;
}

function joined(pieces: readonly Piece[]): string {
  return pieces.map(({ digest }) => digest).join();
}
